package schedule_test

import (
	"context"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/history"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/schedule"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// TestAnEntryIsOverdueUntilItsTickIsTaken: one that never ran, a paused one
// and one that was just changed are not.
func TestAnEntryIsOverdueUntilItsTickIsTaken(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			db := jobstest.Migrated(t, engine)
			if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
				t.Fatal(err)
			}
			registry := jobs.NewRegistry()
			jobs.Handle(registry, jobs.Kind[map[string]any]{Name: "some.work"},
				func(context.Context, jobs.Job, map[string]any) error { return nil })
			now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
			found, err := tables.Open(t.Context(), db.DB, tables.Options{Registry: registry, DefaultQueue: "cmsjobs",
				DatabaseClock: func() time.Time { return now }})
			if err != nil {
				t.Fatal(err)
			}
			store, err := queue.New(t.Context(), found)
			if err != nil {
				t.Fatal(err)
			}
			work := jobs.Spec{Type: "some.work"}
			s, err := schedule.New(schedule.Config{Ticker: store, Edits: store, Newest: history.New(found).NewestTicks,
				Zone: func(context.Context) (*time.Location, error) { return time.UTC, nil },
				Entries: []schedule.Entry{{Name: "nightly", Cron: "0 3 * * *", Job: work},
					{Name: "new", Cron: "0 3 * * *", Job: work}, {Name: "paused", Cron: "0 3 * * *", Job: work,
						Paused: true}}})
			if err != nil {
				t.Fatal(err)
			}
			tick := func(entry, outcome string, at time.Time) {
				t.Helper()
				if _, _, err := store.TakeTick(t.Context(), jobs.TickRecord{Entry: entry, Tick: at, At: at,
					Outcome: outcome}, nil); err != nil {
					t.Fatal(err)
				}
			}
			late := func() []schedule.Late {
				t.Helper()
				list, err := s.Overdue(t.Context(), 10*time.Minute)
				if err != nil {
					t.Fatal(err)
				}
				return list
			}
			two := now.AddDate(0, 0, -2)
			for _, entry := range []string{"nightly", "paused"} {
				tick(entry, "enqueued", time.Date(two.Year(), two.Month(), two.Day(), 3, 0, 0, 0, time.UTC))
			}
			tick("nightly", "manual", now.Add(-time.Hour)) // by hand is not by the clock
			if list := late(); len(list) != 1 || list[0].Entry != "nightly" ||
				!list[0].Tick.Equal(time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)) {
				t.Errorf("%+v", list)
			}
			cron := "0 3 * * *"
			if err := s.ChangeSchedule(t.Context(), "nightly", jobs.ScheduleChange{Cron: &cron}); err != nil {
				t.Fatal(err)
			}
			if list := late(); len(list) != 0 {
				t.Errorf("after a change: %+v", list)
			}
			tick("nightly", "enqueued", time.Date(2026, 3, 2, 3, 0, 0, 0, time.UTC))
			if list := late(); len(list) != 0 {
				t.Errorf("after its tick: %+v", list)
			}
		})
	}
}
