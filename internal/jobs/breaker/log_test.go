package breaker_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/breaker"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// events counts the log entries of several processes by event and level.
func events(t *testing.T, logs ...*bytes.Buffer) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, log := range logs {
		for line := range bytes.Lines(log.Bytes()) {
			var entry struct{ Event, Level, Dependency, Error string }
			if err := json.Unmarshal(line, &entry); err != nil || entry.Dependency != host {
				t.Errorf("%s: %v", line, err)
			}
			if entry.Event == "circuit.opened" && entry.Error != "connection refused because it is out" {
				t.Errorf("the cause is missing: %s", line)
			}
			count[entry.Level+" "+entry.Event]++
		}
	}
	return count
}

// Two processes whose uses fail at the same time, and work again at the same
// time, log one opening and one closing; so does a reset.
func TestOneLineWhenItOpensAndOneWhenItCloses(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			db := jobstest.Migrated(t, engine)
			logs := []*bytes.Buffer{{}, {}}
			var fleet []*breaker.Breakers
			for _, log := range logs {
				fleet = append(fleet,
					breaker.New(db.DB, breaker.Config{Failures: 3, Logger: slog.New(slog.NewJSONHandler(log, nil))}))
			}
			together := func(failure error) {
				var group sync.WaitGroup
				for i := range 12 {
					group.Go(func() {
						if err := fleet[i%2].Record(t.Context(), host, failure); err != nil {
							t.Error(err)
						}
					})
				}
				group.Wait()
			}
			together(errOut)
			for range 2 { // probes that fail
				expire(t, db)
				if err := fleet[0].Allow(t.Context(), host); err != nil {
					t.Fatal(err)
				}
				record(t, fleet[0], 1, errOut)
			}
			together(nil)
			together(nil)
			if got := events(t, logs...); got["WARN circuit.opened"] != 1 || got["INFO circuit.closed"] != 1 ||
				len(got) != 2 {
				t.Errorf("%v", got)
			}
			together(errOut)
			for _, b := range fleet {
				if _, err := b.Reset(t.Context(), host); err != nil {
					t.Fatal(err)
				}
			}
			if got := events(t, logs...); got["WARN circuit.opened"] != 2 || got["INFO circuit.closed"] != 2 ||
				len(got) != 2 {
				t.Errorf("%v", got)
			}
		})
	}
}
