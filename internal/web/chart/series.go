package chart

import (
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"
)

// Line is one series of a chart: a value a step. NaN is no value.
type Line struct {
	Name   string
	Key    string // of its colour: ok, warn, bad, 1 to 6
	Sum    string // in the legend
	Values []float64
}

// Series is a chart of values in steps of time: bars on top of each other, or
// lines. It is whole without a script; a script finds its values in Values.
type Series struct {
	ID      string
	Name    string // read aloud
	Since   time.Time
	Step    time.Duration
	Lines   []Line
	Stacked bool
	Unit    string               // of values for the script: "n" or "ms"
	Format  func(float64) string // a value in words
}

// stepLabel writes where a step begins: the day for who looks far back.
func (c Series) stepLabel(i int) string {
	at := c.Since.Add(time.Duration(i) * c.Step).UTC()
	if c.Step > 30*time.Minute {
		return at.Format("01-02 15:04")
	}
	return at.Format("15:04")
}

// axisLabel is shorter than stepLabel.
func (c Series) axisLabel(i int) string {
	if c.Step > 30*time.Minute {
		return c.Since.Add(time.Duration(i) * c.Step).UTC().Format("01-02")
	}
	return c.stepLabel(i)
}

// steps is how many values each line has.
func (c Series) steps() int {
	if len(c.Lines) == 0 {
		return 0
	}
	return len(c.Lines[0].Values)
}

// top is the highest value, of a stack or of a line.
func (c Series) top() (top float64) {
	for i := range c.steps() {
		sum := 0.0
		for _, l := range c.Lines {
			switch v := l.Values[i]; {
			case math.IsNaN(v):
			case c.Stacked:
				sum += v
			default:
				sum = max(sum, v)
			}
		}
		top = max(top, sum)
	}
	return top
}

// gridStep is a round step that divides a scale up to top into four parts or fewer.
func gridStep(top float64) float64 {
	if top <= 4 {
		return 1
	}
	size := math.Pow(10, math.Floor(math.Log10(top/4)))
	for _, f := range []float64{1, 2, 5} {
		if f*size*4 >= top {
			return f * size
		}
	}
	return 10 * size
}

// axisLabels is how many moments stand under a chart.
const axisLabels = 6

// SVG draws the chart. Its lengths are percentages, so that words in it keep their
// size.
func (c Series) SVG() template.HTML {
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="still axes" role="img" aria-label="%s">`, template.HTMLEscapeString(c.Name))
	step := gridStep(c.top())
	scale := step * max(math.Ceil(c.top()/step), 1)
	for v := 0.0; v <= scale; v += step {
		y := 100 - 100*v/scale
		fmt.Fprintf(&out, `<line class="f-grid" x1="0" x2="100%%" y1="%.4g%%" y2="%.4g%%"/><text x="-8" y="%.4g%%" dy="4" `+
			`text-anchor="end">%s</text>`, y, y, y, template.HTMLEscapeString(c.Format(v)))
	}
	n := c.steps()
	for i := 0; i < n; i += max((n+axisLabels-1)/axisLabels, 1) {
		fmt.Fprintf(&out, `<text x="%.4g%%" y="100%%" dy="16">%s</text>`, 100*float64(i)/float64(n), c.axisLabel(i))
	}
	if c.Stacked {
		c.bars(&out, scale)
	} else {
		c.lines(&out, scale)
	}
	out.WriteString(`</svg>`)
	return template.HTML(out.String())
}

// bars draws the steps of a stacked chart.
func (c Series) bars(out *strings.Builder, scale float64) {
	n := float64(c.steps())
	for i := range c.steps() {
		var bars strings.Builder
		title, y := c.stepLabel(i), 100.0
		for _, l := range c.Lines {
			v := l.Values[i]
			title += fmt.Sprintf("\n%s: %s", l.Name, c.Format(v))
			if v > 0 {
				height := 100 * v / scale
				y -= height
				fmt.Fprintf(&bars, `<rect class="b-%s" x="%.4g%%" y="%.4g%%" width="%.4g%%" height="%.4g%%"/>`, l.Key,
					100*(float64(i)+0.14)/n, y, 72/n, height)
			}
		}
		if bars.Len() > 0 {
			fmt.Fprintf(out, `<g><title>%s</title>%s</g>`, template.HTMLEscapeString(title), bars.String())
		}
	}
}

// lines draws the lines of a chart; where a step has no value, a line is broken.
func (c Series) lines(out *strings.Builder, scale float64) {
	n := c.steps()
	fmt.Fprintf(out, `<svg viewBox="0 0 %d 100" preserveAspectRatio="none" width="100%%" height="100%%">`, max(n-1, 1))
	for _, l := range c.Lines {
		var path strings.Builder
		open := false
		for i, v := range l.Values {
			if math.IsNaN(v) {
				open = false
				continue
			}
			word := "L"
			if !open {
				word = "M"
			}
			fmt.Fprintf(&path, "%s%d %.4g", word, i, 100-100*v/scale)
			if !open {
				path.WriteString("h.01") // so that a single value is seen
			}
			open = true
		}
		if path.Len() > 0 {
			fmt.Fprintf(out, `<path class="ln f-%s" d="%s"/>`, l.Key, path.String())
		}
	}
	out.WriteString(`</svg>`)
}

// Row is a line of the table of a chart's values.
type Row struct {
	At     string
	Values []string
}

// Rows are the values as a table, newest first; steps without any are left out.
func (c Series) Rows() []Row {
	var rows []Row
	for i := c.steps() - 1; i >= 0; i-- {
		row, some := Row{At: c.stepLabel(i)}, false
		for _, l := range c.Lines {
			v := l.Values[i]
			if math.IsNaN(v) {
				row.Values = append(row.Values, "–")
				continue
			}
			some = some || v > 0 || !c.Stacked
			row.Values = append(row.Values, c.Format(v))
		}
		if some {
			rows = append(rows, row)
		}
	}
	return rows
}

// Values are the chart as JSON, for the script that draws it.
func (c Series) Values() (string, error) {
	type line struct {
		Name   string     `json:"name"`
		Key    string     `json:"key"`
		Values []*float64 `json:"values"`
	}
	all := struct {
		Since   int64  `json:"since"` // Unix s
		Step    int64  `json:"step"`
		Stacked bool   `json:"stacked"`
		Unit    string `json:"unit"`
		Lines   []line `json:"lines"`
	}{c.Since.Unix(), int64(c.Step / time.Second), c.Stacked, c.Unit, nil}
	for _, l := range c.Lines {
		x := line{l.Name, l.Key, make([]*float64, len(l.Values))}
		for i, v := range l.Values {
			if !math.IsNaN(v) {
				x.Values[i] = &v
			}
		}
		all.Lines = append(all.Lines, x)
	}
	text, err := json.Marshal(all)
	return string(text), err
}

// Spark is a small line without axes, of a colour: ok, bad, busy, idle. NaN is
// drawn as nothing.
func Spark(colour string, values []float64) template.HTML { return NamedSpark(colour, "", values) }

// NamedSpark is a Spark that says in words what it shows: to screen readers, and where a
// pointer rests on it.
func NamedSpark(colour, name string, values []float64) template.HTML {
	if len(values) < 2 {
		return ""
	}
	name = template.HTMLEscapeString(name)
	reads, title := `aria-hidden="true"`, ""
	if name != "" {
		reads, title = `role="img" aria-label="`+name+`"`, "<title>"+name+"</title>"
	}
	top := 0.0
	for _, v := range values {
		if !math.IsNaN(v) {
			top = max(top, v)
		}
	}
	if top == 0 {
		top = 1
	}
	var points strings.Builder
	for i, v := range values {
		if math.IsNaN(v) {
			v = 0
		}
		fmt.Fprintf(&points, "L%.4g %.4g", 100*float64(i)/float64(len(values)-1), 23-21*v/top)
	}
	line := points.String()[1:]
	return template.HTML(fmt.Sprintf(`<svg class="spark %s" viewBox="0 0 100 24" preserveAspectRatio="none" `+
		`%s>%s<path class="area" d="M0 24L%sL100 24z"/><path d="M%s"/></svg>`, colour, reads, title, line, line))
}

// Square is one outcome in a strip, by its class: ok, part, warn, bad, miss, skip2, none.
type Square struct{ Class, Title string }

// Strip draws outcomes, oldest first; how high a square is says what it is as well.
func Strip(name string, squares []Square) template.HTML {
	const pitch = 10
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="strip" width="%d" height="16" role="img" aria-label="%s">`,
		max(len(squares)*pitch-2, 1), template.HTMLEscapeString(name))
	for i, s := range squares {
		y, height := 4, 8
		switch s.Class {
		case "bad":
			y, height = 0, 16
		case "warn":
			y, height = 2, 12
		case "skip2":
			y, height = 7, 2
		case "part": // half filled
			y, height = 8, 8
			fmt.Fprintf(&out, `<rect class="part-of" x="%d.5" y=".5" width="7" height="15" rx="1"/>`, i*pitch)
		}
		fmt.Fprintf(&out, `<rect class="%s" x="%d" y="%d" width="8" height="%d" rx="1.5"><title>%s</title></rect>`,
			s.Class, i*pitch, y, height, template.HTMLEscapeString(s.Title))
	}
	out.WriteString(`</svg>`)
	return template.HTML(out.String())
}
