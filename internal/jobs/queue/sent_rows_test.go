package queue

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// sentJob is a payload of the tests' own type.
func sentJob(data string) string {
	return fmt.Sprintf(`{"type":%q,"data":%s}`, tablestest.Plain.Name, data)
}

// insertSent inserts a row as the Laravel package does and returns what it sends.
func (f *fixture) insertSent(queue, payload string) (id int64, message string) {
	f.T.Helper()
	f.InsertRaw(queue, payload)
	id = int64(f.CountRows("SELECT MAX(id) FROM jobs"))
	due := f.CountRows("SELECT "+f.tables.Layout.Table().Due.Seconds()+" FROM jobs WHERE id = ?", id)
	return id, message1(id, payload, int64(due), int64(due))
}

func message1(id int64, payload string, due, created int64) string {
	return fmt.Sprintf(`{"id":%d,"payload":%q,"available_at":%d,"created_at":%d}`, id, payload, due, created)
}

// idle makes the queue one that was seen empty, behind a job that ran.
func (f *fixture) idle() {
	f.T.Helper()
	f.InsertRaw("default", sentJob("0"))
	for _, c := range f.MustClaim(1) {
		f.MustSettle(tablestest.End(c, jobs.Completed))
	}
	f.cursorOf("default", 0).next = f.tables.Options.Clock().Add(60 * prefetchTTL) // no rescan
	if got := f.claimsOf(f.Store, 1); len(got) != 0 {
		f.T.Fatalf("%+v is claimed of an empty queue", got)
	}
}

// The row that a program sends with its news is claimed without a look.
func TestASentRowIsClaimedUnread(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		f.idle()
		for i := range 3 {
			payload := sentJob(fmt.Sprintf(`{"text":"é \" %d"}`, i))
			id, message := f.insertSent("default", payload)
			statements := f.tables.Statements()
			f.NoteRow("Default", message)
			got := f.claimsOf(f.Store, 1)
			if statements = f.tables.Statements() - statements; len(got) != 1 || statements != 1 {
				t.Fatalf("%d jobs are claimed with %d statements, want one with one", len(got), statements)
			}
			if j := got[0].Job; j.ID != id || string(got[0].Payload) != payload || j.Type != tablestest.Plain.Name ||
				j.Queue != "default" || j.Attempt != 1 || j.EnqueuedAt.Unix() != j.RunAt.Unix() {
				t.Errorf("claimed %+v", j)
			}
			// the lease is one like all others
			if errs := f.MustSettle(tablestest.End(got[0], jobs.Completed)); errs[0] != nil {
				t.Error(errs)
			}
			if n := len(f.claimsOf(f.Store, 1)) + f.CountRows("SELECT COUNT(*) FROM jobs"); n != 0 {
				t.Errorf("%d jobs are left", n)
			}
		}
	})
}

// A row that was sent stands for its equals as one does that was read, and waits for a
// permit as they do.
func TestASentRowKeepsThePolicyOfItsType(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		f.idle()
		payload := fmt.Sprintf(`{"type":%q,"data":{"a":1}}`, tablestest.Coalesce.Name)
		_, message := f.insertSent("default", payload)
		f.InsertRaw("default", payload)
		f.NoteRow("default", message)
		got := f.claimsOf(f.Store, 1)
		if len(got) != 1 || len(got[0].Duplicates) != 1 {
			t.Fatalf("claimed %+v, want one job with its equal", got)
		}
		f.MustSettle(tablestest.End(got[0], jobs.Completed))
		f.claimsOf(f.Store, 1)
		limited := fmt.Sprintf(`{"type":%q,"data":{}}`, tablestest.Limited.Name)
		for i := range 5 { // its limit is less
			_, message := f.insertSent("default", limited)
			f.NoteRow("default", message)
			if got := f.claimsOf(f.Store, 1); len(got) == 0 {
				return
			} else if i == 4 {
				t.Error("more jobs run than the limit of their type allows")
			}
		}
	})
}

// future is a due time that does not come.
const future = 1<<31 - 1

// falseRows are rows that are sent otherwise than the table has them, or may not be
// claimed: by what is wrong. The table has the row with the number and the due time.
func falseRows() map[string]func(f *fixture, id, due int64) (queue, row string) {
	plain := sentJob(`{"a":1}`)
	return map[string]func(f *fixture, id, due int64) (queue, row string){
		"another payload": func(_ *fixture, id, due int64) (string, string) {
			return "default", message1(id, sentJob(`{"A":1}`), due, due)
		},
		"another queue": func(_ *fixture, id, due int64) (string, string) {
			return "other", message1(id, plain, due, due)
		},
		"another time of its INSERT": func(_ *fixture, id, due int64) (string, string) {
			return "default", message1(id, plain, due, due-5)
		},
		"another due time": func(_ *fixture, id, due int64) (string, string) {
			return "default", message1(id, plain, due-5, due)
		},
		"a delayed one": func(f *fixture, id, due int64) (string, string) {
			t := f.tables.Layout.Table()
			f.DB.MustExec(fmt.Sprintf("UPDATE jobs SET available_at = %s", t.Due.FromUnix(future)))
			return "default", message1(id, plain, future, due)
		},
		"one that runs": func(f *fixture, id, due int64) (string, string) {
			f.DB.MustExec("UPDATE jobs SET reserved_at = available_at, attempts = 1")
			return "default", message1(id, plain, due, due)
		},
		"one that was started": func(f *fixture, id, due int64) (string, string) {
			f.DB.MustExec("UPDATE jobs SET attempts = 1")
			return "default", message1(id, plain, due, due)
		},
		"one that is gone": func(f *fixture, id, due int64) (string, string) {
			f.DB.MustExec("DELETE FROM jobs")
			return "default", message1(id, plain, due, due)
		},
		"one behind another": func(f *fixture, id, _ int64) (string, string) {
			second, row := f.insertSent("default", sentJob(`2`))
			if second != id+1 {
				f.T.Fatalf("the second row has the number %d", second)
			}
			return "default", row
		},
		"no JSON": func(*fixture, int64, int64) (string, string) { return "default", `{"id":` },
	}
}

// A row is claimed unread only if the table has it so, and nothing stands before it.
func TestWhatWasSentMustBeInTheTable(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		for name, send := range falseRows() {
			t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) { f.claimsWhatIsThere(t, send) })
		}
	})
}

// claimsWhatIsThere claims after a row was sent: what a look would.
func (f *fixture) claimsWhatIsThere(t *testing.T, send func(f *fixture, id, due int64) (queue, row string)) {
	plain := sentJob(`{"a":1}`)
	f.DB.MustExec("DELETE FROM jobs")
	f.idle()
	id, _ := f.insertSent("default", plain)
	due := int64(f.CountRows("SELECT " + f.tables.Layout.Table().Due.Seconds() + " FROM jobs"))
	queue, row := send(f, id, due)
	want := f.CountRows("SELECT COALESCE(MIN(id), 0) FROM jobs WHERE reserved_at IS NULL AND " +
		f.tables.Layout.Table().Due.Seconds() + fmt.Sprint(" < ", future))
	f.NoteRow(queue, row)
	f.NoteArrival("default")
	ask := askOne
	ask.Queues = []string{"default", "other"}
	got, err := f.Claim(bg, ask)
	switch {
	case err != nil:
		t.Fatal(err)
	case want == 0 && len(got) == 0:
	case len(got) != 1 || got[0].Job.ID != int64(want):
		t.Fatalf("claimed %+v, want job %d", got, want)
	case string(got[0].Payload) != plain || got[0].Job.Queue != "default" ||
		got[0].Job.EnqueuedAt.Unix() != due || got[0].Job.RunAt.Unix() != due:
		t.Errorf("the job is what was sent, not what the table has: %s, %+v", got[0].Payload, got[0].Job)
	}
}

// PHP's rows are PHP's, also if they are sent; and where the database's clock is not what it
// was taken to be, a lease would be none.
func TestARowOfPHPOrOfAnotherTimeIsNotClaimedUnread(t *testing.T) {
	stockTables(t, func(t *testing.T, f *fixture) {
		f.idle()
		_, message := f.insertSent("default", `{"uuid":"u","job":"Illuminate\\Queue\\CallQueuedHandler@call","data":{}}`)
		f.NoteRow("default", message)
		if got := f.claimsOf(f.Store, 1); len(got) != 0 || f.CountRows("SELECT attempts FROM jobs") != 0 {
			t.Errorf("a row of PHP is claimed: %+v", got)
		}
		f.DB.MustExec("DELETE FROM jobs")
		_, message = f.insertSent("default", sentJob("1"))
		row, ok := tables.Sent(message)
		if !ok || !f.tables.Claimable("default", row) {
			t.Fatalf("%s is no row", message)
		}
		for _, e := range []struct {
			off  int64
			want error
		}{{-60, errContended}, {60, errContended}, {1, nil}} {
			row.Seen = f.Clock.Now().Unix() + e.off
			if err := f.compareAndSet(bg, f.tables.DB, []*tables.Candidate{row}, row.Seen, "t"); err != e.want {
				t.Errorf("a clock that is %d s off: %v, want %v", e.off, err, e.want)
			}
		}
	})
}
