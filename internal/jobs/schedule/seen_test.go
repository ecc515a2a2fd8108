package schedule_test

import (
	"context"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/schedule"
)

// rings lets a scheduler that was just started ring once and says what it did.
func (w *world) rings(t *testing.T, entries ...schedule.Entry) schedule.Report {
	t.Helper()
	store := w.store(t)
	s, err := schedule.New(schedule.Config{Entries: entries, Ticker: store, Edits: store, CatchUp: 6 * time.Hour,
		Zone: func(context.Context) (*time.Location, error) { return time.UTC, nil }})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Tick(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// An entry has no ticks of moments before it was there, or before it was
// changed, whatever is made up for: not on a first start, and not after it was
// taken out and put back. What was missed while nobody ran is made up for.
func TestAnEntryHasNoTicksBeforeItWasThere(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			noon := time.Date(2026, 3, 20, 12, 0, 30, 0, time.UTC)
			w := newWorld(t, engine, noon)
			at := func(name, cron string) schedule.Entry {
				return schedule.Entry{Name: name, Cron: cron, Job: w.jobType.New(map[string]string{"entry": name})}
			}
			minutely, letter := at("minutely", "* * * * *"), at("letter", "30 11 * * *")
			is := func(when string, got, want schedule.Report) {
				t.Helper()
				if got != want {
					t.Errorf("%s: %+v, want %+v", when, got, want)
				}
			}
			later := func(d time.Duration) { w.unix.Add(int64(d.Seconds())) }

			is("a first start", w.rings(t, minutely), schedule.Report{})
			later(time.Minute)
			is("the next minute", w.rings(t, minutely), schedule.Report{Enqueued: 1})
			is("an entry that is added after its moment", w.rings(t, minutely, letter), schedule.Report{})
			later(time.Minute)
			letter.Cron = "45 11 * * *"
			is("an entry that is moved to an earlier moment", w.rings(t, minutely, letter), schedule.Report{
				Enqueued: 1})

			letter.Cron = "10 12 * * *"
			w.rings(t, letter)
			later(2 * time.Hour)
			is("what was missed while nobody ran", w.rings(t, letter), schedule.Report{Enqueued: 1})
			for range 4 { // the letter is out of the timetable for an hour
				later(15 * time.Minute)
				w.rings(t, at("other", "0 0 * * *"))
			}
			letter.Cron = "45 11 * * *"
			is("an entry that is put back as it once was", w.rings(t, letter), schedule.Report{})
		})
	}
}
