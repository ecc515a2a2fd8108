package overview

import (
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web/chart"
	"github.com/cmsjobs/cmsjobs/internal/web/format"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

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
func flowPlots(lang locale.Printer, flows []jobs.Throughput, step time.Duration) []chart.Plot {
	var done, failed int64
	var ended, failures, lasts, waits []chart.Bar
	var mostEnded, mostFailed int64
	var longest, waited time.Duration
	for _, f := range flows {
		done, failed = done+f.Completed, failed+f.FailedAttempts
		mostEnded, mostFailed = max(mostEnded, f.Completed+f.FailedAttempts), max(mostFailed, f.FailedAttempts)
		longest, waited = max(longest, f.Duration), max(waited, f.Wait)
		at := axis(f.At, step)
		ended = append(ended, chart.Bar{Label: lang.Text("plot.ended", at, f.Completed, f.FailedAttempts),
			Low: float64(f.Completed), High: float64(f.FailedAttempts)})
		failures = append(failures, chart.Bar{Label: at + ": " + format.Number(f.FailedAttempts),
			High: float64(f.FailedAttempts)})
		lasts = append(lasts, chart.Bar{Label: at + ": " + format.Duration(f.Duration), Low: float64(f.Duration)})
		waits = append(waits, chart.Bar{Label: at + ": " + format.Duration(f.Wait), Low: float64(f.Wait)})
	}
	first, last := axis(flows[0].At, step), axis(flows[len(flows)-1].At.Add(step), step)
	draw := func(key, sum, top string, bars []chart.Bar) chart.Plot {
		return chart.Plot{Key: key, Sum: sum, SVG: chart.Chart{Name: lang.Text(key) + ": " + sum, Bars: bars,
			First: first, Last: last, Top: top}.SVG()}
	}
	return []chart.Plot{
		draw("plot.throughput", lang.Text("plot.throughput.sum", format.Number(done), format.Number(failed)),
			format.Number(mostEnded), ended),
		draw("plot.failures", format.Number(failed), format.Number(mostFailed), failures),
		draw("plot.duration", lang.Text("plot.atmost", format.Duration(longest)), format.Duration(longest), lasts),
		draw("plot.wait", lang.Text("plot.atmost", format.Duration(waited)), format.Duration(waited), waits),
	}
}
