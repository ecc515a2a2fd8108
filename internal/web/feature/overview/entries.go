package overview

import (
	"context"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/chart"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

// entryRow is a schedule entry: how its last ticks went, and the next one.
type entryRow struct {
	Name, Type, Words string
	Paused            bool
	Next              time.Time
	Strip             template.HTML
}

// stripTicks is how many ticks a strip shows.
const stripTicks = 24

// entries lists the schedule, the next tick first.
func (h handlers) entries(req *web.Request, o *overview, g *healthInputs) error {
	list := slices.Clone(g.schedules)
	slices.SortStableFunc(list, func(a, b jobs.ScheduleRecord) int { return nextTick(a).Compare(nextTick(b)) })
	o.More = max(len(list)-shownEntries, 0)
	list = list[:len(list)-o.More]
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = r.Name
	}
	ticks, ready, err := web.Cached(req, "ticks "+strings.Join(names, " "),
		func(ctx context.Context) (map[string][]jobs.TickRecord, error) { return h.ticks(ctx, names) })
	if err != nil {
		return err
	}
	g.ready = g.ready && ready
	lang := req.Printer()
	for _, r := range list {
		row := entryRow{Name: r.Name, Type: r.Type, Words: r.Cron, Paused: r.Paused, Strip: strip(lang, ticks[r.Name])}
		if h.CronWords != nil {
			row.Words = h.CronWords(lang, r.Cron)
		}
		if len(r.Next) > 0 {
			row.Next = r.Next[0]
		}
		o.Entries = append(o.Entries, row)
	}
	return nil
}

// nextTick is far away for an entry without one.
func nextTick(r jobs.ScheduleRecord) time.Time {
	if len(r.Next) == 0 {
		return time.Unix(1<<40, 0)
	}
	return r.Next[0]
}

func (h handlers) ticks(ctx context.Context, entries []string) (map[string][]jobs.TickRecord, error) {
	all := map[string][]jobs.TickRecord{}
	for _, name := range entries {
		list, err := h.Schedules.Ticks(ctx, name, jobs.Page{Limit: stripTicks, Uncounted: true})
		if err != nil {
			return nil, fmt.Errorf("listing the ticks of %s: %w", name, err)
		}
		all[name] = list.Items[:min(len(list.Items), stripTicks)]
	}
	return all, nil
}

// tickClass is how a square shows an outcome of a tick.
func tickClass(outcome string) string {
	switch outcome {
	case "completed":
		return "ok"
	case "retried", "released":
		return "warn"
	case jobs.PartialOutcome:
		return "part"
	case "failed", jobs.CrashedOutcome:
		return "bad"
	case "missed":
		return "miss"
	case "skipped", "cancelled":
		return "skip2"
	}
	return "none"
}

// strip draws ticks, which are newest first. Its name counts them by outcome.
func strip(lang locale.Printer, ticks []jobs.TickRecord) template.HTML {
	if len(ticks) == 0 {
		return ""
	}
	squares := make([]chart.Square, 0, len(ticks))
	counts := map[string]int{}
	var order []string
	for _, t := range slices.Backward(ticks) {
		outcome := lang.Name("tick.", t.Outcome)
		squares = append(squares, chart.Square{Class: tickClass(t.Outcome),
			Title: t.Tick.UTC().Format("2006-01-02 15:04 UTC") + " " + outcome})
		if counts[outcome]++; counts[outcome] == 1 {
			order = append(order, outcome)
		}
	}
	parts := make([]string, len(order))
	for i, outcome := range order {
		parts[i] = fmt.Sprintf("%d %s", counts[outcome], outcome)
	}
	return chart.Strip(lang.Text("overview.strip", len(ticks), strings.Join(parts, ", ")), squares)
}
