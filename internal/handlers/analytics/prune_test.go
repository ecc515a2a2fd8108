package analytics

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// Raw rows go, figures stay; what comes for a day whose rows are gone is
// refused and counted, because rolling the day up again would count it alone.
func TestFiguresOutliveTheirRawRows(t *testing.T) {
	each(t, func(t *testing.T, h *Handler) {
		ctx := context.Background()
		rows := generated(12_000, 6, 4) // 2026-03-04 to 2026-03-09
		if err := write(ctx, h.DB, slices.Clone(rows)); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Process(ctx, ProcessPayload{}); err != nil {
			t.Fatal(err)
		}
		figures := h.dump(t)
		h.KeepRaw = 4 * 24 * time.Hour // the clock says 2026-03-10
		done, err := h.Process(ctx, ProcessPayload{})
		if err != nil {
			t.Fatal(err)
		}
		var left, old int64
		for _, r := range rows {
			if r.day < "2026-03-06" {
				old++
			}
		}
		if err := h.DB.Get(&left, "SELECT COUNT(*) FROM cmsjobs_page_views"); err != nil {
			t.Fatal(err)
		}
		if old < 2000 || done.Pruned != old || left != int64(len(rows))-old {
			t.Errorf("%d rows pruned, %d left; %d of %d are old", done.Pruned, left, old, len(rows))
		}

		late := slices.Clone(rows[:10])
		for i := range late {
			late[i].day, late[i].nonce = "2026-03-05", randomNonce()
		}
		late[9].day = "2026-03-06" // the first day that is still open: this one counts
		refused, err := h.keep(ctx, late)
		if err != nil || refused != 9 {
			t.Errorf("%d of 10 rows refused, %v", refused, err)
		}
		for _, p := range []ProcessPayload{{}, {DateRange: &DateRange{"2026-03-01", "2026-03-31"}}} {
			if _, err := h.Process(ctx, p); err != nil {
				t.Fatal(err)
			}
		}
		for _, line := range h.dump(t) {
			if strings.HasPrefix(line, "2026-03-06") {
				continue
			}
			if _, there := slices.BinarySearch(figures, line); !there {
				t.Errorf("%s was not so before the rows went", line)
			}
		}
	})
}

// A collector counts what comes too late among what it dropped.
func TestLateViewsAreCountedByTheCollector(t *testing.T) {
	h := bench(t, jobstest.SQLite)
	ctx := context.Background()
	h.DB.MustExec("INSERT INTO cmsjobs_analytics_days (day, version) VALUES ('2026-03-10', -1)")
	c := h.NewCollector()
	for range 3 {
		if code := send(c, `{"u":"https://example.com/a"}`, nil); code != 204 {
			t.Fatal(code)
		}
	}
	if err := c.last(nil); err != nil {
		t.Fatal(err)
	}
	if got := c.Counts(); got != (Counts{Accepted: 3, Dropped: 3}) {
		t.Errorf("%+v", got)
	}
	if _, err := h.Process(ctx, ProcessPayload{}); err != nil || len(h.dump(t)) != 0 {
		t.Errorf("a closed day was rolled up: %v, %v", h.dump(t), err)
	}
}

// Anyone who looked at a day before it was closed and acts afterwards changes
// nothing: neither a collector that writes, nor a roll-up that counted.
func TestAClosedDayStaysClosed(t *testing.T) {
	each(t, func(t *testing.T, h *Handler) {
		ctx := context.Background()
		rows := generated(600, 3, 6) // 2026-03-07 to 2026-03-09
		process := func(p ProcessPayload) {
			t.Helper()
			if _, err := h.Process(ctx, p); err != nil {
				t.Fatal(err)
			}
		}
		if err := write(ctx, h.DB, slices.Clone(rows)); err != nil {
			t.Fatal(err)
		}
		process(ProcessPayload{})
		figures := h.dump(t)
		h.KeepRaw = 36 * time.Hour // the clock says 2026-03-10 12:00: the 7th and the 8th are closed
		process(ProcessPayload{})

		late := rows[0]
		late.day = "2026-03-08"
		for range 2 {
			late.nonce = randomNonce()
			if err := write(ctx, h.DB, []row{late}); err != nil {
				t.Fatal(err)
			}
		}
		march := ProcessPayload{DateRange: &DateRange{"2026-03-01", "2026-03-31"}}
		if days, err := h.due(ctx, march); err != nil || !slices.Equal(days, []string{"2026-03-09"}) {
			t.Errorf("%v are to be rolled up, %v", days, err)
		}
		if err := h.replace(ctx, late.day, 7, 0, newTally(nil, time.UTC)); err != nil {
			t.Fatal(err)
		}
		process(march)
		process(ProcessPayload{})
		if got := h.dump(t); !slices.Equal(got, figures) {
			t.Errorf("%d figures are not the %d that there were", len(got), len(figures))
		}
		var left int
		if err := h.DB.Get(&left, "SELECT COUNT(*) FROM cmsjobs_page_views WHERE day < '2026-03-09'"); err != nil ||
			left != 0 {
			t.Errorf("%d late rows are left, %v", left, err)
		}
	})
}

// A day that waits for its roll-up keeps its rows, however old it is.
func TestADayThatWaitsKeepsItsRows(t *testing.T) {
	h := bench(t, jobstest.SQLite)
	ctx := context.Background()
	if err := write(ctx, h.DB, generated(200, 3, 4)); err != nil {
		t.Fatal(err)
	}
	h.KeepRaw = time.Hour
	if n, err := h.prune(ctx); err != nil || n != 0 {
		t.Errorf("%d rows that nobody had counted went, %v", n, err)
	}
}

// Where nothing else tells, the growth of posts.views does: from the second
// look on, once each.
func TestCountersOfPostsStandIn(t *testing.T) {
	each(t, func(t *testing.T, h *Handler) {
		ctx := context.Background()
		h.CountPostViews = true
		h.Site = &cms.Site{DB: h.DB, Env: cms.Env{"APP_URL": "https://example.com"}}
		for _, statement := range []string{"CREATE TABLE posts (id BIGINT PRIMARY KEY, views BIGINT NOT NULL)",
			"INSERT INTO posts VALUES (1, 100), (2, 50), (3, 7)"} {
			if _, err := h.DB.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		process := func() int64 {
			t.Helper()
			done, err := h.Process(ctx, ProcessPayload{})
			if err != nil {
				t.Fatal(err)
			}
			return done.Views
		}
		if n := process(); n != 0 {
			t.Errorf("%d views were counted whose day nobody knows", n)
		}
		for _, statement := range []string{"UPDATE posts SET views = 105 WHERE id = 1",
			"UPDATE posts SET views = 3 WHERE id = 2", "INSERT INTO posts VALUES (4, 9)"} {
			if _, err := h.DB.Exec(statement); err != nil { // read, set back, new
				t.Fatal(err)
			}
		}
		if first, second := process(), process(); first != 5 || second != 0 {
			t.Errorf("%d views, and %d again", first, second)
		}
		if _, err := h.DB.Exec("UPDATE posts SET views = 13 WHERE id IN (2, 4)"); err != nil {
			t.Fatal(err)
		}
		process()
		want := []string{"2026-03-10|example.com|page|post 1|5|0|0", "2026-03-10|example.com|page|post 2|10|0|0",
			"2026-03-10|example.com|page|post 4|4|0|0", "2026-03-10|example.com|total||19|0|0"}
		if got := h.dump(t); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		// Real views are better: the counters are not added to them.
		if err := write(ctx, h.DB, generated(10, 1, 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := h.DB.Exec("UPDATE posts SET views = 500"); err != nil {
			t.Fatal(err)
		}
		if n := process(); n > 10 {
			t.Errorf("%d views of 10", n)
		}
	})
}
