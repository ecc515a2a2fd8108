package analytics

import (
	"context"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// WeeklyPayload asks for the mail about a week of the CMS's calendar: the one
// that ended last, or the one named, as 2026-W09 (ISO 8601, from Monday).
type WeeklyPayload struct {
	Week string `json:"week,omitempty" example:"2026-W05"`
}

// Validate refuses weeks that are none.
func (p *WeeklyPayload) Validate() error {
	if p.Week == "" {
		return nil
	}
	_, err := weekStart(p.Week)
	return err
}

// Weekly is the kind analytics.weekly. It does nothing but read figures and
// enqueue the mail, which has its own attempts.
var Weekly = jobs.Kind[WeeklyPayload]{Name: "analytics.weekly", Policy: jobs.Policy{
	MaxAttempts: 3, Timeout: 5 * time.Minute}}

// weeklyTop is how many pages and sources the mail names.
const weeklyTop = 10

// weekly rolls up what changed, so that the week is whole, and enqueues the
// mail in the transaction that completes the job: one job, one mail.
func (h *Handler) weekly(ctx context.Context, p WeeklyPayload) error {
	if _, err := h.Process(ctx, ProcessPayload{}); err != nil {
		return err
	}
	monday, err := h.weekOf(ctx, p)
	if err != nil {
		return err
	}
	report, err := h.Report(ctx, ReportQuery{Since: monday.Format(time.DateOnly),
		Until: monday.AddDate(0, 0, 6).Format(time.DateOnly), Limit: weeklyTop})
	if err != nil {
		return err
	}
	jobs.FollowUp(ctx, h.WeeklyMail(h.weeklyData(monday, report)))
	return jobs.SetResult(ctx, weekResult{report.Total})
}

// weekOf is the Monday of the week that a payload means.
func (h *Handler) weekOf(ctx context.Context, p WeeklyPayload) (time.Time, error) {
	if p.Week != "" {
		return weekStart(p.Week)
	}
	zone, err := h.Site.Zone(ctx)
	if err != nil {
		return time.Time{}, err
	}
	today := h.Now().In(zone)
	return monday(today).AddDate(0, 0, -7), nil
}

// weeklyData is what the template weekly-analytics shows.
func (h *Handler) weeklyData(monday time.Time, r Report) map[string]any {
	year, week := monday.ISOWeek()
	data := map[string]any{"week": fmt.Sprintf("%d-W%02d", year, week), "since": r.Since, "until": r.Until,
		"views": r.Total.Views, "viewsChange": change(r.Total.Views, r.Previous.Views),
		"visitors": r.Total.Visitors, "visitorsChange": change(r.Total.Visitors, r.Previous.Visitors),
		"visits": r.Total.Visits, "bounceRate": fmt.Sprintf("%.0f %%", r.Total.BounceRate),
		"visitDuration": duration(r.Total.VisitSeconds)}
	var pages, referrers []map[string]any
	for _, l := range r.Lists {
		for _, i := range l.Items {
			switch l.Dimension {
			case dimPage:
				pages = append(pages, map[string]any{"title": i.Name, "url": h.Site.URL() + i.Name, "views": i.Views})
			case dimReferrer:
				referrers = append(referrers, map[string]any{"name": named(l.Dimension, i.Name),
					"visitors": i.Visitors})
			}
		}
	}
	data["pages"], data["referrers"] = pages, referrers
	return data
}

// weekResult is the result of analytics.weekly.
type weekResult struct{ Figures }

// Summary implements jobs.Summarizer.
func (f weekResult) Summary() (s phrase.Summary) {
	s.Say("The week had %s {view|views} by %s {visitor|visitors} in %s {visit|visits}; the mail about it is enqueued.",
		f.Views, f.Visitors, f.Visits)
	return s
}
