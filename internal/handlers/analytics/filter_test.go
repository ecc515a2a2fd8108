package analytics

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// The report that is filtered by a value has the visits, the visitors and the bounces that the list
// of all visits has for this value, of every dimension, on every engine.
func TestAFilterSelectsTheVisitsThatItsRowCounts(t *testing.T) {
	each(t, func(t *testing.T, h *Handler) {
		ctx := context.Background()
		h.setGoals(t, Goal{Name: "Read", Path: "/page-1*"}, Goal{Name: "Signed up", Event: "Signup"})
		if err := write(ctx, h.DB, generated(3000, 4, 5)); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Process(ctx, ProcessPayload{}); err != nil {
			t.Fatal(err)
		}
		q := ReportQuery{Since: "2026-03-08", Until: "2026-03-09", Site: "a.example", Limit: 4}
		all, err := h.Report(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range all.Lists {
			if len(list.Items) == 0 {
				t.Errorf("no %s to filter by", list.Dimension)
			}
			for _, item := range list.Items {
				q.Filters = []Filter{{list.Dimension, item.Name}}
				r, err := h.Report(ctx, q)
				if err != nil {
					t.Fatal(err)
				}
				if r.Total.Visits != item.Visits || r.Total.Visitors != item.Visitors || r.All != all.Total {
					t.Errorf("%v: %+v of %+v, and the row has %+v", q.Filters, r.Total, r.All, item.Figures)
				}
				if own := ownItem(r, q.Filters[0]); own.Visits != item.Visits || own.Views != item.Views ||
					own.BounceRate != item.BounceRate {
					t.Errorf("%v: its own row is %+v, and was %+v", q.Filters, own, item)
				}
			}
		}
	})
}

// ownItem is the filter's value in the filtered report.
func ownItem(r Report, f Filter) Item {
	for _, l := range r.Lists {
		for _, item := range l.Items {
			if l.Dimension == f.Dimension && item.Name == f.Name {
				return item
			}
		}
	}
	return Item{}
}

// The days before are filtered too; days whose views were deleted are said to be missing.
func TestAFilterComparesWithThePastAndNamesWhatIsMissing(t *testing.T) {
	each(t, func(t *testing.T, h *Handler) {
		ctx := context.Background()
		if err := write(ctx, h.DB, generated(2000, 4, 6)); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Process(ctx, ProcessPayload{}); err != nil {
			t.Fatal(err)
		}
		google := []Filter{{dimReferrer, "Google"}}
		past, err := h.Report(ctx, ReportQuery{Since: "2026-03-06", Until: "2026-03-07", Filters: google})
		if err != nil {
			t.Fatal(err)
		}
		now, err := h.Report(ctx, ReportQuery{Since: "2026-03-08", Until: "2026-03-09", Filters: google})
		if err != nil {
			t.Fatal(err)
		}
		if now.Previous != past.Total || past.Total.Visits == 0 || now.Deleted != 0 {
			t.Errorf("compared with %+v and not with %+v; %d days missing", now.Previous, past.Total, now.Deleted)
		}
		h.KeepRaw = 3 * 24 * time.Hour
		if _, err := h.Process(ctx, ProcessPayload{}); err != nil {
			t.Fatal(err)
		}
		if past, err = h.Report(ctx, ReportQuery{Since: "2026-03-06", Until: "2026-03-07", Filters: google}); err != nil {
			t.Fatal(err)
		}
		if past.Deleted != 1 || past.Total.Visits == 0 || past.Days[0].Visits != 0 {
			t.Errorf("one day of two is deleted: %d, %+v", past.Deleted, past.Days)
		}
		_, err = h.Report(ctx, ReportQuery{Since: "2026-03-08", Until: "2026-03-09", Filters: []Filter{{"bot", "bot"}}})
		if !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), "filtered") {
			t.Errorf("a filter by bots: %v", err)
		}
	})
}

// Who had a view in the last five minutes is on the site, once; a bot is not.
func TestCurrentVisitorsAreThoseOfTheLastMinutes(t *testing.T) {
	each(t, func(t *testing.T, h *Handler) {
		ctx := context.Background()
		var rows []row
		for i, ago := range []time.Duration{time.Second, 2 * time.Minute, 4 * time.Minute, 6 * time.Minute, time.Minute} {
			at := h.Now().Add(-ago)
			r := row{day: at.Format(time.DateOnly), at: at.UnixMilli(), site: "a.example", path: "/", kind: kindView,
				nonce: randomNonce()}
			r.visitor[0] = byte(max(i, 1)) // the first two views are one visitor's
			if i == 4 {
				r.kind = kindBot
			}
			rows = append(rows, r)
		}
		if err := write(ctx, h.DB, rows); err != nil {
			t.Fatal(err)
		}
		for site, want := range map[string]int64{"": 2, "a.example": 2, "b.example": 0} {
			r, err := h.Report(ctx, ReportQuery{Since: "2026-03-10", Until: "2026-03-10", Site: site})
			if err != nil {
				t.Fatal(err)
			}
			if r.Current == nil || *r.Current != want {
				t.Errorf("%q has %v visitors, not %d", site, r.Current, want)
			}
		}
	})
}
