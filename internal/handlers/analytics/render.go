package analytics

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"strconv"
	"strings"
)

// WriteJSON writes a report for programs.
func WriteJSON(w io.Writer, r Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteCSV writes a report for spreadsheets: one row a day or item.
func WriteCSV(w io.Writer, r Report) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"dimension", "name", "views", "visitors", "visits", "bounces", "bounce_rate", "visit_seconds",
		"page_seconds", "exit_rate", "conversion_rate"}}
	for _, d := range r.Days {
		rows = append(rows, record("day", d.Day, d.Figures))
	}
	for _, h := range r.Hours {
		rows = append(rows, record("hour", h.Hour, h.Figures))
	}
	for _, l := range r.Lists {
		for _, i := range l.Items {
			rows = append(rows, record(l.Dimension, i.Name, i.Figures))
		}
	}
	return c.WriteAll(rows)
}

func record(dimension, name string, f Figures) []string {
	// A cell that begins like a formula would be run by a spreadsheet.
	if name != "" && strings.ContainsRune("=+-@\t", rune(name[0])) {
		name = "'" + name
	}
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	rate := func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
	return []string{dimension, name, n(f.Views), n(f.Visitors), n(f.Visits), n(f.Bounces), rate(f.BounceRate),
		n(f.VisitSeconds), n(f.PageSeconds), rate(f.ExitRate), rate(f.ConversionRate)}
}

// WriteHTML writes a report for people: one file, no script, its plots inside,
// for a mail, a browser or paper. templates holds analytics.html.
func WriteHTML(w io.Writer, templates fs.FS, r Report) error {
	t, err := template.New("analytics.html").Funcs(template.FuncMap{
		"plot": plot, "share": share, "change": change, "named": named, "number": number, "duration": duration,
		"extra": extra,
	}).ParseFS(templates, "analytics.html")
	if err != nil {
		return fmt.Errorf("reading the report's template: %w", err)
	}
	if err := t.Execute(w, r); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// The plot's size in its own units; it scales to the width that there is.
const (
	plotWidth  = 720
	plotHeight = 160
	plotBottom = 18 // space for the dates
)

// plot draws views (bars) and visitors (line) by day as SVG, of one day by hour.
func plot(r Report) template.HTML {
	days, step := r.Days, "day"
	if len(r.Hours) > 0 {
		days, step = nil, "hour"
		for _, h := range r.Hours {
			days = append(days, Day{h.Hour, h.Figures})
		}
	}
	if len(days) == 0 {
		return ""
	}
	top := int64(1)
	for _, d := range days {
		top = max(top, d.Views)
	}
	width := float64(plotWidth) / float64(len(days))
	y := func(v int64) float64 { return plotHeight - float64(v)/float64(top)*(plotHeight-10) }
	var bars, line strings.Builder
	for i, d := range days {
		x := float64(i) * width
		fmt.Fprintf(&bars,
			`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s: %s views, %s visitors</title></rect>`,
			x+width*0.1, y(d.Views), width*0.8, plotHeight-y(d.Views), d.Day, number(d.Views), number(d.Visitors))
		fmt.Fprintf(&line, "%.1f,%.1f ", x+width/2, y(d.Visitors))
	}
	first, last := days[0].Day, days[len(days)-1].Day
	// Numbers and checked dates only: nothing of a visitor's gets in here.
	return template.HTML(
		fmt.Sprintf(
			`<svg class="plot" viewBox="0 0 %d %d" role="img" aria-label="Views and visitors from %s to %s, at most %s views a %s">`+
				`<g class="bars">%s</g><polyline class="line" fill="none" points="%s"/>`+
				`<text x="0" y="%d">%s</text><text x="%d" y="%d" text-anchor="end">%s</text><text x="0" y="9">%s</text></svg>`,
			plotWidth, plotHeight+plotBottom, first, last, number(top), step, bars.String(),
			strings.TrimSpace(line.String()),
			plotHeight+14, first, plotWidth, plotHeight+14, last, number(top)))
}

// share is an item's part of the largest, in percent, for its bar.
func share(items []Item, i Item) int {
	top := int64(1)
	for _, other := range items {
		top = max(top, other.Visits)
	}
	return int(100 * i.Visits / top)
}

// change says how figures moved against the days before.
func change(now, before int64) string {
	if before == 0 {
		return "–"
	}
	return fmt.Sprintf("%+.0f %%", 100*float64(now-before)/float64(before))
}

// named gives the empty value of a dimension a name for people.
func named(dimension, name string) string {
	switch {
	case name != "":
		return name
	case dimension == dimReferrer:
		return "Direct"
	}
	return "Unknown"
}

// number groups thousands by thin spaces.
func number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u2009" + s[i:]
	}
	return s
}

// duration writes seconds for people: 1:05, 1:02:03.
func duration(seconds int64) string {
	if seconds < 3600 {
		return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
}

// extra is the one more figure that a dimension has: how long a page was looked at,
// how often it was the last, how many visitors reached a goal, else the bounce rate.
func extra(dimension string, f Figures) string {
	switch dimension {
	case dimPage:
		return duration(f.PageSeconds)
	case dimExit:
		return fmt.Sprintf("%.0f %%", f.ExitRate)
	case dimGoal, dimEvent:
		return fmt.Sprintf("%.1f %%", f.ConversionRate)
	}
	return fmt.Sprintf("%.0f %%", f.BounceRate)
}
