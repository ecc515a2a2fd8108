package analytics

import (
	"fmt"
	"html/template"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/web/chart"
	"github.com/cmsjobs/cmsjobs/internal/web/format"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

// figures are what the row at the top shows and the graph can show; the first one is the graph's own.
var figures = [...]string{"visitors", "visits", "views", "bounceRate", "duration"}

// analyticsTile is one figure of the row at the top.
type analyticsTile struct {
	Figure string
	Value  string
	Change string // against as many days before; "" where there is nothing to compare with
	Better bool   // the change is for the better
	Before string // the value of the days before
}

// valueOf is a figure as a number, and as people read it.
func valueOf(figure string, t AnalyticsTotal) (number float64, text string) {
	switch figure {
	case "visitors":
		return float64(t.Visitors), format.Number(t.Visitors)
	case "visits":
		return float64(t.Visits), format.Number(t.Visits)
	case "views":
		return float64(t.Views), format.Number(t.Views)
	case "bounceRate":
		return t.BounceRate, fmt.Sprintf("%.0f %%", t.BounceRate)
	}
	return float64(t.VisitSeconds), clockTime(t.VisitSeconds)
}

// tiles compare each figure with the days before.
func tiles(lang locale.Printer, report AnalyticsReport) (all []analyticsTile) {
	for _, figure := range figures {
		now, text := valueOf(figure, report.Total)
		before, past := valueOf(figure, report.Previous)
		t := analyticsTile{Figure: figure, Value: text}
		if report.Previous.Visits > 0 {
			t.Change, t.Before = changeOf(figure, now, before), lang.Text("analytics.before", past)
			t.Better = (now >= before) != (figure == "bounceRate") || now == before
		}
		all = append(all, t)
	}
	return all
}

// changeOf writes how a figure moved: a rate in points, anything else in percent.
func changeOf(figure string, now, before float64) string {
	switch {
	case figure == "bounceRate":
		return fmt.Sprintf("%+.0f", now-before)
	case before == 0:
		return ""
	}
	return fmt.Sprintf("%+.0f %%", 100*(now-before)/before)
}

func percent(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// step is what one bar of the graph shows.
type step struct {
	label string
	AnalyticsTotal
}

// steps are the hours of one day, else the days.
func steps(report AnalyticsReport) (all []step) {
	for _, h := range report.Hours {
		label := h.Hour
		if at, err := time.Parse(time.RFC3339, h.Hour); err == nil {
			label = at.Format("15:04") // in the CMS's zone, which the text has
		}
		all = append(all, step{label, AnalyticsTotal{Views: h.Views, Visitors: h.Visitors, Visits: h.Visits,
			BounceRate: h.BounceRate, VisitSeconds: h.VisitSeconds}})
	}
	if len(all) > 0 {
		return all
	}
	for _, d := range report.Days {
		all = append(all, step{d.Day, AnalyticsTotal{Views: d.Views, Visitors: d.Visitors, Visits: d.Visits,
			BounceRate: d.BounceRate, VisitSeconds: d.VisitSeconds}})
	}
	return all
}

// plot draws the chosen figure by day, of one day by hour.
func plot(v analyticsPageData, lang locale.Printer, report AnalyticsReport) template.HTML {
	name := lang.Text("analytics." + v.Figure)
	d := chart.Chart{Name: lang.Text("analytics.plot", name, v.Since, v.Until), First: v.Since, Last: v.Until}
	all := steps(report)
	if len(report.Hours) > 0 {
		d.Name, d.First, d.Last = lang.Text("analytics.plot.hours", name, v.Since), all[0].label, all[len(all)-1].label
	}
	top := -1.0
	for _, s := range all {
		value, text := valueOf(v.Figure, s.AnalyticsTotal)
		if value > top {
			top, d.Top = value, text
		}
		d.Bars = append(d.Bars, chart.Bar{Label: lang.Text("analytics.day", s.label, text, name), Low: value})
	}
	return d.SVG()
}
