package web

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// The size of plots in their own units; they stretch to the room that there is.
const (
	plotWidth  = 600
	plotHeight = 100
	widestBar  = 40.0 // where there are few
)

// chartBar is one step of a plot; High stands on top of Low.
type chartBar struct {
	Label     string // for who points at it
	Low, High float64
}

// chart is a plot of bars. All its texts are ours or figures; they are
// escaped all the same.
type chart struct {
	Name        string // read aloud
	Bars        []chartBar
	First, Last string // under the axis
	Top         string // the highest value, in words
}

func (d chart) svg() template.HTML {
	esc := template.HTMLEscapeString
	top := 0.0
	for _, b := range d.Bars {
		top = max(top, b.Low+b.High)
	}
	if top == 0 {
		top = 1
	}
	step := float64(plotWidth) / float64(max(len(d.Bars), 1))
	var out strings.Builder
	fmt.Fprintf(&out, `<span class="top">%s</span><svg class="plot" viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="%s"><line class="axis" x1="0" y1="%d" x2="%d" y2="%d"/>`,
		esc(d.Top), plotWidth, plotHeight+1, esc(d.Name), plotHeight, plotWidth, plotHeight)
	for i, b := range d.Bars {
		low, high := b.Low/top*(plotHeight-2), b.High/top*(plotHeight-2)
		width := min(step*0.8, widestBar)
		x := float64(i)*step + (step-width)/2
		fmt.Fprintf(&out, `<g><title>%s</title><rect class="hit" x="%.1f" y="0" width="%.1f" height="%d"/>`, esc(b.Label), float64(i)*step, step, plotHeight)
		if low > 0 {
			fmt.Fprintf(&out, `<rect class="low" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, x, plotHeight-low, width, max(low, 1))
		}
		if high > 0 {
			fmt.Fprintf(&out, `<rect class="high" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, x, plotHeight-low-max(high, 2), width, max(high, 2))
		}
		out.WriteString(`</g>`)
	}
	// Words stand beside the drawing: in it they would be stretched with it.
	fmt.Fprintf(&out, `</svg><span class="ends"><span>%s</span><span>%s</span></span>`, esc(d.First), esc(d.Last))
	return template.HTML(out.String())
}

// axis writes a moment as short as the plot's steps allow.
func axis(t time.Time, step time.Duration) string {
	if step < 5*time.Minute {
		return t.UTC().Format("15:04")
	}
	if step < 24*time.Hour {
		return t.UTC().Format("01-02 15:04")
	}
	return t.UTC().Format("2006-01-02")
}

// flowPlots are the four plots of the overview.
func flowPlots(lang string, flows []jobs.Throughput, step time.Duration) []plotted {
	var done, failed int64
	var ended, failures, lasts, waits []chartBar
	var mostEnded, mostFailed int64
	var longest, waited time.Duration
	for _, f := range flows {
		done, failed = done+f.Completed, failed+f.FailedAttempts
		mostEnded, mostFailed = max(mostEnded, f.Completed+f.FailedAttempts), max(mostFailed, f.FailedAttempts)
		longest, waited = max(longest, f.Duration), max(waited, f.Wait)
		at := axis(f.At, step)
		ended = append(ended, chartBar{translate(lang, "plot.ended", at, f.Completed, f.FailedAttempts), float64(f.Completed), float64(f.FailedAttempts)})
		failures = append(failures, chartBar{at + ": " + grouped(f.FailedAttempts), 0, float64(f.FailedAttempts)})
		lasts = append(lasts, chartBar{at + ": " + length(f.Duration), float64(f.Duration), 0})
		waits = append(waits, chartBar{at + ": " + length(f.Wait), float64(f.Wait), 0})
	}
	first, last := axis(flows[0].At, step), axis(flows[len(flows)-1].At.Add(step), step)
	draw := func(key, sum, top string, bars []chartBar) plotted {
		return plotted{key, sum, chart{Name: translate(lang, key) + ": " + sum, Bars: bars, First: first, Last: last, Top: top}.svg()}
	}
	return []plotted{
		draw("plot.throughput", translate(lang, "plot.throughput.sum", grouped(done), grouped(failed)), grouped(mostEnded), ended),
		draw("plot.failures", grouped(failed), grouped(mostFailed), failures),
		draw("plot.duration", translate(lang, "plot.atmost", length(longest)), length(longest), lasts),
		draw("plot.wait", translate(lang, "plot.atmost", length(waited)), length(waited), waits),
	}
}
