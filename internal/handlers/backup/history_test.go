package backup

import (
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// A backup whose process was killed failed: history and health say so as soon as its
// lock has ended, not before.
func TestAKilledBackupDoesNotRunForever(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			s := newSite(t, engine)
			h := s.handler(t)
			s.backup(t, h)
			s.clock.now = s.clock.now.Add(time.Minute)
			_, unlock, err := h.locks.Exclusive(t.Context(), "a backup")
			if err != nil {
				t.Fatal(err)
			}
			killed := h.newRun(Request{Database: true}, nil)
			if err := h.Record(t.Context(), killed.report); err != nil {
				t.Fatal(err)
			}
			status := func() (catalog.Report, string) {
				t.Helper()
				history, err := h.History(t.Context(), 5)
				if err != nil || len(history) != 2 || history[1].Status != manifest.Complete {
					t.Fatalf("%+v, %v", history, err)
				}
				health, err := h.Health(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				var warnings []string
				for _, w := range health.Warnings {
					warnings = append(warnings, w.Text)
				}
				return history[0], strings.Join(warnings, "\n")
			}
			if last, warnings := status(); last.Status != manifest.Running ||
				strings.Contains(warnings, "its process ended") {
				t.Errorf("while the lock is held: %s, %s", last.Status, warnings)
			}
			unlock()
			if last, warnings := status(); last.Status != manifest.Failed ||
				!strings.Contains(warnings, "the last backup failed: its process ended") {
				t.Errorf("after the lock has ended: %+v, %s", last, warnings)
			}
		})
	}
}
