package history

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// Jobs that wait because their type begins at its rate need no more workers: they are
// overdue only when none of them begins any more.
func TestJobsThatWaitForTheirRateAreNotOverdue(t *testing.T) {
	for _, v := range variants() {
		if v.Wall {
			continue
		}
		t.Run(v.String(), func(t *testing.T) {
			f := openFixture(t, v, v.Database(t))
			list := []jobs.Spec{tablestest.Job(`"unlimited"`)}
			for i := range 10 {
				list = append(list, tablestest.Rated.New(json.RawMessage(fmt.Sprint(i))))
			}
			f.MustEnqueue(list...)
			known := func(kind string) bool { _, found := f.Options().Registry.Known(kind); return found }
			look := func(what string, due, rated int) {
				t.Helper()
				all, err := f.Backlogs(bg, known)
				if err != nil || len(all) != 1 {
					t.Fatalf("%s: %+v, %v", what, all, err)
				}
				if b := all[0]; b.Due != due || b.Rated != rated {
					t.Errorf("%s: %d due, %d wait for their rate, want %d and %d", what, b.Due, b.Rated, due, rated)
				}
			}
			look("none has begun", 11, 0)
			began := f.ClaimBy(f.queue, 20)
			if len(began) != 4 {
				t.Fatalf("%d jobs begin, want 3 at the rate and one without", len(began))
			}
			look("three began", 0, 7)
			f.Clock.Ahead += 4 * time.Minute
			f.Clock.Lengths += 4 * time.Minute
			look("nothing begins for minutes", 7, 0)
		})
	}
}
