package analytics

import (
	"fmt"
	"html/template"

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

// plot draws the chosen figure by day.
func plot(v analyticsPageData, lang locale.Printer, days []AnalyticsDay) template.HTML {
	name := lang.Text("analytics." + v.Figure)
	d := chart.Chart{Name: lang.Text("analytics.plot", name, v.Since, v.Until), First: v.Since, Last: v.Until}
	top := -1.0
	for _, day := range days {
		value, text := valueOf(v.Figure, AnalyticsTotal{Views: day.Views, Visitors: day.Visitors, Visits: day.Visits,
			BounceRate: day.BounceRate, VisitSeconds: day.VisitSeconds})
		if value > top {
			top, d.Top = value, text
		}
		d.Bars = append(d.Bars, chart.Bar{Label: lang.Text("analytics.day", day.Day, text, name), Low: value})
	}
	return d.SVG()
}
