package terminal

import (
	"slices"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"

	"github.com/cmsjobs/cmsjobs/internal/display"
)

// colour is one of a terminal's sixteen, which its owner chose to be readable.
type colour string

const (
	plain  colour = ""
	bold   colour = "1"
	faint  colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	blue   colour = "34"
)

// span is a piece of a line.
type span struct {
	text string
	colour
}

// line is what stands in one row of a frame.
type line []span

func text(s string) line                   { return line{{s, plain}} }
func painted(c colour, s string) line      { return line{{s, c}} }
func (l line) add(c colour, s string) line { return append(l, span{s, c}) }

// canvas collects the rows of a frame.
type canvas struct {
	View
	rows []line
}

func (c *canvas) line(l line) { c.rows = append(c.rows, l) }

// wrapped draws pieces in as few rows as they need.
func (c *canvas) wrapped(pieces []line) {
	const between = "   "
	var row line
	used := 0
	for _, p := range pieces {
		width := 0
		for _, s := range p {
			width += runewidth.StringWidth(clean(s.text))
		}
		if used > 0 && used+len(between)+width > c.Width {
			c.line(row)
			row, used = nil, 0
		}
		if used > 0 {
			row, used = row.add(plain, between), used+len(between)
		}
		row, used = append(row, p...), used+width
	}
	c.line(row)
}

// String is the frame: as many rows and columns as the terminal has.
func (c *canvas) String() string {
	rows := c.rows
	if len(rows) > c.Height {
		rows = rows[:c.Height]
	}
	out := make([]string, 0, c.Height)
	for _, row := range rows {
		out = append(out, c.written(row))
	}
	for len(out) < c.Height {
		out = append(out, "")
	}
	return strings.Join(out, "\n")
}

// written is a line cut to the terminal's width.
func (c *canvas) written(l line) string {
	var b strings.Builder
	left := c.Width
	for _, s := range l {
		said := clean(s.text)
		if width := runewidth.StringWidth(said); width > left {
			said = runewidth.Truncate(said, left, "…")
			left = 0
		} else {
			left -= width
		}
		if c.Colour && s.colour != plain && said != "" {
			said = "\x1b[" + string(s.colour) + "m" + said + "\x1b[0m"
		}
		b.WriteString(said)
		if left == 0 {
			break
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// clean is foreign text in one line, without what could steer a terminal.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1 // turns the direction of the rest of the line, say
		}
		return r
	}, display.Printable(strings.ReplaceAll(text, "\n", " ")))
}

// column is one of a table: its heading, and whether it holds figures.
type column struct {
	head  string
	right bool
	// most is how wide it is at most; 0 is as wide as it needs.
	most int
}

// cell is one of a table.
type cell = span

// table is rows below headings, each column as wide as its widest cell.
func table(columns []column, rows [][]cell) []line {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = runewidth.StringWidth(c.head)
		for _, row := range rows {
			widths[i] = max(widths[i], runewidth.StringWidth(clean(row[i].text)))
		}
		if c.most > 0 {
			widths[i] = min(widths[i], max(c.most, runewidth.StringWidth(c.head)))
		}
	}
	put := func(row []cell) (l line) {
		for i, c := range row {
			said := runewidth.Truncate(clean(c.text), widths[i], "…")
			switch {
			case columns[i].right:
				said = runewidth.FillLeft(said, widths[i])
			case i < len(row)-1:
				said = runewidth.FillRight(said, widths[i])
			}
			if i > 0 {
				said = "  " + said
			}
			l = l.add(c.colour, said)
		}
		return l
	}
	heads := make([]cell, len(columns))
	for i, c := range columns {
		heads[i] = cell{c.head, faint}
	}
	all := []line{put(heads)}
	for _, row := range rows {
		all = append(all, put(row))
	}
	return all
}

// block is a part of a frame below its heading.
type block struct {
	heading string
	lines   []line // the first is of column heads where heads is true
	heads   bool
	empty   string // what is said where there are no rows
}

// least is how many rows a part has at least, if it needs them.
const least = 3

// blocks draws parts one below the other. Where not all have a place, the last ones
// are left out, and the others are cut evenly: each says how much more there is.
func (c *canvas) blocks(parts []block, footer int) {
	parts = slices.DeleteFunc(parts, func(b block) bool { return len(b.rows()) == 0 && b.empty == "" })
	free := c.Height - len(c.rows) - footer
	taken, fit := 0, 0
	var need []int
	for i, b := range parts {
		need = append(need, max(len(b.rows()), 1))
		frame := 2 // a blank row and the heading
		if b.heads && len(b.rows()) > 0 {
			frame++
		}
		if taken+frame+min(need[i], least) > free && i > 0 {
			break
		}
		taken, free, fit = taken+min(need[i], least), free-frame, i+1
	}
	for i, n := range shares(need[:fit], free) {
		if n > 0 {
			c.block(parts[i], n)
		}
	}
}

// rows are the lines below the column heads.
func (b block) rows() []line {
	if b.heads {
		return b.lines[min(1, len(b.lines)):]
	}
	return b.lines
}

func (c *canvas) block(b block, n int) {
	c.line(nil)
	rows := b.rows()
	heading := painted(bold, b.heading)
	if more := len(rows) - n; more > 0 {
		heading = heading.add(faint, display.Sprintf("  %d more", more))
	}
	c.line(heading)
	if len(rows) == 0 {
		c.line(painted(faint, b.empty))
		return
	}
	if b.heads {
		c.line(b.lines[0])
	}
	for _, row := range rows[:min(n, len(rows))] {
		c.line(row)
	}
}

// shares divides free rows among parts that need some: nobody gets more than it
// needs, and what one leaves the others get.
func shares(need []int, free int) []int {
	got := make([]int, len(need))
	for free > 0 {
		before := free
		for i := range need {
			if free > 0 && got[i] < need[i] {
				got[i]++
				free--
			}
		}
		if free == before {
			break
		}
	}
	return got
}
