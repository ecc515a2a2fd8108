package overview

import (
	"cmp"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/chart"
	"github.com/cmsjobs/cmsjobs/internal/web/format"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

// tile is one figure, which links to the page behind it.
type tile struct {
	Key, Href   string // of its heading's text
	Value, Unit string
	Note        string
	Bad         bool
	Spark       template.HTML
}

// tiles are the six figures. What the history tells is "–" while it is counted.
func tiles(req *web.Request, g healthInputs, x *jobs.Series, look span, summaries []web.Summary) []tile {
	lang, stats := req.Printer(), ops.Stats(g.stats)
	waiting := tile{Key: "status.queued", Href: "/admin/jobs?status=queued", Value: format.Number(stats.Waiting),
		Note: waitingNote(lang, stats)}
	running := runningTile(lang, g, stats)
	if x != nil && len(x.Waiting) > 0 && len(x.Running) > 0 {
		waiting.Spark = occupancySpark(lang, "idle", "overview.spark.waiting", withBacklog(x.Waiting, x.Step,
			time.Duration(stats.OldestMS)*time.Millisecond, g.stats.Queued), look)
		running.Spark = occupancySpark(lang, "busy", "overview.spark.running", withNow(x.Running,
			stats.Processing), look)
	}
	list := append([]tile{waiting, running}, pastTiles(lang, x, look, stats)...)
	for _, s := range summaries {
		if s.Tile != nil {
			list = append(list, ageTile(lang, *s.Tile, req.Now()))
		}
	}
	return list
}

// withNow has what is so now in the last step, which has only begun.
func withNow(values []float64, now int64) []float64 {
	values = slices.Clone(values)
	values[len(values)-1] = float64(now)
	return values
}

// withBacklog adds the jobs that wait now, of which the history knows nothing yet: the
// oldest has waited since so long, and they are taken to have come evenly since then.
func withBacklog(values []float64, step, oldest time.Duration, now int64) []float64 {
	values = withNow(values, now)
	last := len(values) - 1
	for i := range last {
		ago := time.Duration(last-i) * step
		if ago < oldest {
			values[i] += float64(now) * (1 - float64(ago)/float64(oldest))
		}
	}
	return values
}

// occupancySpark is a line of how many waited or ran; its name says the most and the average.
func occupancySpark(lang locale.Printer, colour, key string, values []float64, look span) template.HTML {
	most, sum := 0.0, 0.0
	for _, v := range values {
		most, sum = max(most, v), sum+v
	}
	name := lang.Text(key, about(sum/float64(len(values))), about(most), lang.Text("range."+look.name))
	return chart.NamedSpark(colour, name, values)
}

// about is a number with as many digits as it is worth.
func about(v float64) string {
	if v > 0 && v < 10 && v != math.Trunc(v) {
		return strconv.FormatFloat(max(v, 0.1), 'f', 1, 64)
	}
	return format.Number(int64(math.Round(v)))
}

func waitingNote(lang locale.Printer, stats ops.StatsView) string {
	oldest := "–"
	if stats.OldestMS > 0 {
		oldest = format.Duration(time.Duration(stats.OldestMS) * time.Millisecond)
	}
	notes := []string{lang.Text("overview.oldest") + ": " + oldest}
	if stats.Delayed > 0 {
		notes = append(notes, lang.Text("overview.delayed", format.Number(stats.Delayed)))
	}
	if stats.Foreign > 0 {
		notes = append(notes, lang.Text("overview.foreign", format.Number(stats.Foreign)))
	}
	return strings.Join(notes, " · ")
}

func runningTile(lang locale.Printer, g healthInputs, stats ops.StatsView) tile {
	live, slots, busy := 0, 0, 0
	for _, w := range g.workers {
		if w.Alive {
			live, slots, busy = live+1, slots+w.Slots, busy+len(w.Running)
		}
	}
	return tile{Key: "status.processing", Href: "/admin/jobs?status=processing",
		Value: format.Number(stats.Processing), Note: lang.Text("overview.slots", busy, slots, live)}
}

// pastTiles are those with a line of how it was.
func pastTiles(lang locale.Printer, x *jobs.Series, look span, stats ops.StatsView) []tile {
	past := lang.Text("range." + look.name)
	completed := tile{Key: "status.completed", Href: "/admin/jobs?status=completed",
		Value: format.Number(stats.Completed)}
	failed := tile{Key: "status.failed", Href: "/admin/failed", Value: format.Number(stats.Failed),
		Bad: stats.Failed > 0}
	if stats.Ended > 0 {
		failed.Note = lang.Text("overview.rate", strconv.FormatFloat(stats.SuccessRate*100, 'f', 1, 64))
	}
	wait := tile{Key: "overview.wait", Href: "#wait", Value: "–", Note: lang.Text("overview.wait.none", past)}
	if x == nil {
		return []tile{completed, failed, wait}
	}
	for _, c := range x.Counts {
		values, sum := make([]float64, len(c.Counts)), int64(0)
		for i, n := range c.Counts {
			values[i], sum = float64(n), sum+n
		}
		switch c.Name {
		case jobs.Completed.String():
			completed.Note = lang.Text("overview.past", format.Number(sum), past)
			completed.Spark = chart.Spark("", values)
		case jobs.Failed.String():
			failed.Spark = chart.Spark("bad", values)
		}
	}
	if all := x.AllWaits; all.Attempts > 0 {
		wait.Value, wait.Unit, _ = strings.Cut(format.Duration(all.P95), " ")
		wait.Note = lang.Text("overview.wait.note", format.Duration(all.P50), format.Duration(all.P99))
		values := make([]float64, len(x.Waits))
		for i, p := range x.Waits {
			if values[i] = float64(p.P95); p.Attempts == 0 {
				values[i] = math.NaN()
			}
		}
		wait.Spark = chart.Spark("", values)
	}
	return []tile{completed, failed, wait}
}

// ageTile is a feature's: how long ago something was.
func ageTile(lang locale.Printer, t web.Tile, now time.Time) tile {
	v := tile{Key: t.Key, Href: t.Path, Value: "–", Note: t.Note}
	if !t.At.IsZero() {
		var unit string
		v.Value, unit, _ = strings.Cut(format.Duration(max(now.Sub(t.At), 0)), " ")
		v.Unit = lang.Text("time.ago", unit)
	}
	return v
}

// runningRow is a job that runs now.
type runningRow struct {
	ID, Type string
	Since    time.Time
	Progress *jobs.Progress
	Share    int64 // of the progress, in per cent; −1 is unknown
}

// runningRows are those that run longest.
func runningRows(req *web.Request, workers []jobs.WorkerRecord) []runningRow {
	var list []runningRow
	for _, w := range workers {
		for _, j := range w.Running {
			row := runningRow{ID: j.UUID, Type: j.Type, Since: j.Since, Progress: req.View().Progress(j.Progress),
				Share: -1}
			if p := row.Progress; p != nil && p.Total > 0 {
				row.Share = format.Percent(p.Done, p.Total)
			}
			list = append(list, row)
		}
	}
	slices.SortFunc(list, func(a, b runningRow) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
	return list[:min(len(list), shownRunning)]
}
