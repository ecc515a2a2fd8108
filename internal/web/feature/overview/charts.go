package overview

import (
	"html/template"
	"math"
	"strconv"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web/chart"
	"github.com/cmsjobs/cmsjobs/internal/web/format"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

// chartView is a chart with its legend and table.
type chartView struct {
	ID, Title string // the title's key
	Short     bool
	Lines     []chart.Line
	SVG       template.HTML
	Values    string // JSON for the script
	Rows      []chart.Row
}

func newChartView(title string, c chart.Series) (*chartView, error) {
	values, err := c.Values()
	return &chartView{ID: c.ID, Title: title, Short: !c.Stacked, Lines: c.Lines, SVG: c.SVG(), Values: values,
		Rows: c.Rows()}, err
}

// draw makes the charts of a series.
func (o *overview) draw(lang locale.Printer, x jobs.Series, by jobs.SeriesSplit, look span) (err error) {
	base := chart.Series{Since: x.Since, Step: x.Step}
	counts := base
	counts.ID, counts.Stacked, counts.Unit, counts.Format = "throughput", true, "n", formatCount
	for i, c := range x.Counts {
		counts.Lines = append(counts.Lines, countLine(lang, c, by, i))
	}
	counts.Name = lang.Text("chart.throughput.name", lang.Text("range."+look.name)) + chartSums(counts.Lines)
	if o.Counts, err = newChartView("chart.throughput", counts); err != nil {
		return err
	}
	if o.Waits, err = percentileChart(lang, base, "wait", x.Waits, x.AllWaits, look); err != nil {
		return err
	}
	o.Lengths, err = percentileChart(lang, base, "duration", x.Durations, x.AllDurations, look)
	return err
}

// countLine is one colour of the throughput.
func countLine(lang locale.Printer, c jobs.NamedCounts, by jobs.SeriesSplit, i int) chart.Line {
	l := chart.Line{Name: c.Name, Key: strconv.Itoa(min(i, 5) + 1), Values: make([]float64, len(c.Counts))}
	switch {
	case by == jobs.ByOutcome:
		l.Key = map[string]string{"completed": "ok", "retried": "warn", "failed": "bad"}[c.Name]
		l.Name = lang.Text("chart.outcome." + c.Name)
	case c.Name == "":
		l.Key, l.Name = "6", lang.Text("chart.others."+string(by))
	}
	var sum int64
	for i, n := range c.Counts {
		sum += n
		l.Values[i] = float64(n)
	}
	l.Sum = format.Number(sum)
	return l
}

// percentileChart draws how long attempts waited or took.
func percentileChart(lang locale.Printer, c chart.Series, id string, steps []jobs.Percentiles, all jobs.Percentiles,
	look span) (*chartView, error) {
	c.ID, c.Unit, c.Format = id, "ms", formatMS
	for i, p := range []struct {
		name string
		of   func(jobs.Percentiles) time.Duration
	}{{"p50", func(p jobs.Percentiles) time.Duration { return p.P50 }},
		{"p95", func(p jobs.Percentiles) time.Duration { return p.P95 }},
		{"p99", func(p jobs.Percentiles) time.Duration { return p.P99 }}} {
		l := chart.Line{Name: p.name, Key: strconv.Itoa(i + 1), Sum: "–", Values: make([]float64, len(steps))}
		for i, step := range steps {
			if l.Values[i] = float64(p.of(step).Milliseconds()); step.Attempts == 0 {
				l.Values[i] = math.NaN()
			}
		}
		if all.Attempts > 0 {
			l.Sum = format.Duration(p.of(all))
		}
		c.Lines = append(c.Lines, l)
	}
	c.Name = lang.Text("chart."+id+".name", lang.Text("range."+look.name)) + chartSums(c.Lines)
	return newChartView("chart."+id, c)
}

// chartSums reads the legend of a chart aloud.
func chartSums(lines []chart.Line) (text string) {
	for i, l := range lines {
		text += map[bool]string{true: ": ", false: ", "}[i == 0] + l.Name + " " + l.Sum
	}
	return text
}

func formatCount(v float64) string { return format.Number(int64(v)) }
func formatMS(v float64) string {
	return format.Duration(time.Duration(v) * time.Millisecond)
}
