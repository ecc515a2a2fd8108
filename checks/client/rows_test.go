package client_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/client"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/history"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

type payload struct {
	Name string   `json:"name"`
	HTML string   `json:"html,omitempty"`
	List []string `json:"list,omitempty"`
}

// both are the client and the service's own store on one database.
type both struct {
	*testing.T
	layout tables.Layout
	db     *jobstest.Database
	client *client.Client
	store  *queue.Store
	past   *history.Store
}

func everywhere(t *testing.T, test func(b both)) {
	for _, engine := range jobstest.Engines() {
		for _, layout := range []tables.Layout{tables.Stock, tables.Extended} {
			t.Run(fmt.Sprintf("%s-%s", engine, layout), func(t *testing.T) {
				db := jobstest.Migrated(t, engine)
				if _, err := tables.CreateTables(t.Context(), db.DB, layout, "bb_"); err != nil {
					t.Fatal(err)
				}
				found := newTables(t, db)
				store, err := queue.New(t.Context(), found)
				if err != nil {
					t.Fatal(err)
				}
				test(both{t, layout, db, newClient(t, db), store, history.New(found)})
			})
		}
	}
}

func newClient(t *testing.T, db *jobstest.Database) *client.Client {
	t.Helper()
	c, err := client.New(t.Context(), db.DB.DB, db.Driver, client.Options{Prefix: "bb_"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newTables know the type greet.
func newTables(t *testing.T, db *jobstest.Database) *tables.Tables {
	t.Helper()
	registry := jobs.NewRegistry()
	jobs.Handle(registry, jobs.Kind[payload]{Name: "greet", Queue: "cmsjobs"},
		func(context.Context, jobs.Job, payload) error { return nil })
	found, err := tables.Open(t.Context(), db.DB, tables.Options{Prefix: "bb_", Registry: registry,
		DefaultQueue: "cmsjobs"})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (b both) enqueue(j client.Job) client.Receipt {
	b.Helper()
	r, err := b.client.Enqueue(b.Context(), j)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func (b both) enqueueByStore(n jobs.Spec) jobs.Receipt {
	b.Helper()
	r, err := b.store.Enqueue(b.Context(), n)
	if err != nil {
		b.Fatal(err)
	}
	return r[0]
}

// rows reads a table without what differs from one row to the next: numbers,
// and moments that are now.
func (b both) rows(table, order string, now ...string) []map[string]string {
	b.Helper()
	found, err := b.db.DB.Queryx("SELECT * FROM " + table + " ORDER BY " + order)
	if err != nil {
		b.Fatal(err)
	}
	defer found.Close()
	var list []map[string]string
	for found.Next() {
		row := map[string]any{}
		if err := found.MapScan(row); err != nil {
			b.Fatal(err)
		}
		texts := map[string]string{}
		for column, value := range row {
			if raw, is := value.([]byte); is {
				value = string(raw)
			}
			if !slices.Contains(now, column) {
				texts[column] = fmt.Sprint(value)
			}
		}
		list = append(list, texts)
	}
	if err := found.Err(); err != nil {
		b.Fatal(err)
	}
	return list
}

// pair is one job as the client and as the service are asked for it.
type pair struct {
	ask client.Job
	own jobs.Spec
}

func (b both) pairs() map[string]pair {
	t, priority := b.T, -7
	if b.layout == tables.Stock { // it has no column for one
		priority = 0
	}
	// runs a second later, not earlier
	at := time.Now().Add(time.Hour).Truncate(time.Second).Add(300 * time.Millisecond)
	const id, other = "0190aaaa-bbbb-7ccc-8ddd-eeeeffff0000", "0190aaaa-bbbb-7ccc-8ddd-eeeeffff0001"
	long := strings.Repeat("k", 191) // its name in cmsjobs_unique is longer than the column
	ofStore := func(n jobs.Spec) jobs.Spec {
		if n.UUID == "" {
			n.UUID = "the service's"
		}
		return n
	}
	return map[string]pair{
		"plain": {client.Job{Type: "greet"}, ofStore(jobs.Spec{Type: "greet"})},
		"payload": {
			client.Job{Type: "greet", Payload: payload{Name: "Ánn\u2028 ", HTML: "<b>&'\"</b>", List: []string{"x"}}},
			ofStore(jobs.Spec{
				Type: "greet",
				Data: encode(t, payload{Name: "Ánn\u2028 ", HTML: "<b>&'\"</b>", List: []string{"x"}})})},
		"everything": {
			client.Job{Type: "greet", Queue: "default", ID: id, Payload: payload{Name: "x"},
				Metadata: map[string]string{"by": "me"}, Priority: priority, MaxAttempts: 2, RunAt: at, UniqueKey: "k"},
			jobs.Spec{Type: "greet", Queue: "default", UUID: other, Data: encode(t, payload{Name: "x"}), Priority: priority,
				MaxAttempts: 2, RunAt: at, UniqueKey: "k"}.WithMetadata(map[string]string{"by": "me"}),
		},
		"long keys": {client.Job{Type: "greet", UniqueKey: long},
			ofStore(jobs.Spec{Type: "greet", UniqueKey: long})},
		"empty of PHP": {client.Job{Type: "greet", Payload: []string{}, Metadata: ""},
			ofStore(jobs.Spec{Type: "greet", Data: []byte("[]")})},
		"a type of many": {client.Job{Type: "anything.else", Payload: map[string]int{"n": 1}},
			ofStore(jobs.Spec{Type: "anything.else", Data: []byte(`{"n":1}`)})},
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	k := jobs.Kind[payload]{Name: "greet"}
	return k.New(v.(payload)).Data
}

// The client's rows are the service's, column by column.
func TestTheClientWritesTheServicesRows(t *testing.T) {
	everywhere(t, func(b both) {
		for name, p := range b.pairs() {
			empty := func() {
				b.db.MustExec("DELETE FROM bb_jobs")
				b.db.MustExec("DELETE FROM cmsjobs_unique")
			}
			empty()
			r := b.enqueue(p.ask)
			rows, names := b.rows("bb_jobs", "id", "id", "created_at", "updated_at"),
				b.rows("cmsjobs_unique", "name", "job_id", "created_at")
			b.jobIDsFit(name)
			empty()
			own := b.enqueueByStore(p.own)
			wantRows, wantNames := b.rows("bb_jobs", "id", "id", "created_at", "updated_at"),
				b.rows("cmsjobs_unique", "name", "job_id", "created_at")
			b.jobIDsFit(name)
			equal(b.T, name+": jobs", rows, wantRows, r.ID, own.UUID, p.ask)
			if p.ask.ID == "" { // only the service was given a name
				wantNames = slices.DeleteFunc(wantNames, func(row map[string]string) bool {
					return strings.HasPrefix(row["name"], "uuid:")
				})
			}
			equal(b.T, name+": cmsjobs_unique", names, wantNames, r.ID, own.UUID, p.ask)
		}
	})
}

// jobIDsFit wants every unique name to belong to the one job.
func (b both) jobIDsFit(name string) {
	b.Helper()
	var strays int
	if err := b.db.Get(&strays,
		"SELECT COUNT(*) FROM cmsjobs_unique WHERE job_id NOT IN (SELECT id FROM bb_jobs)"); err != nil {
		b.Fatal(err)
	}
	if strays > 0 {
		b.Errorf("%s: %d unique names belong to no job", name, strays)
	}
}

// equal compares rows, each with its job's id blotted out. What falls due now
// may do so a few seconds apart.
func equal(t *testing.T, what string, have, want []map[string]string, id, wantID string, j client.Job) {
	t.Helper()
	if len(have) != len(want) {
		t.Errorf("%s: %d rows, want %d", what, len(have), len(want))
		return
	}
	for i := range have {
		for column, value := range have[i] {
			value, wanted := strings.ReplaceAll(value, id, "ID"), strings.ReplaceAll(want[i][column], wantID, "ID")
			due := column == "available_at" || column == "run_at"
			if value != wanted && (!due || !j.RunAt.IsZero()) {
				t.Errorf("%s: %s is %q, the service's is %q", what, column, value, wanted)
			}
		}
		if !slices.Equal(slices.Sorted(maps.Keys(have[i])), slices.Sorted(maps.Keys(want[i]))) {
			t.Errorf("%s: other columns", what)
		}
	}
}

// The service claims what the client wrote, and its handler sees what was said.
func TestTheServiceClaimsTheClientsRows(t *testing.T) {
	everywhere(t, func(b both) {
		r := b.enqueue(client.Job{Type: "greet", Payload: payload{Name: "Ann"}, Metadata: map[string]string{
			"by": "me"}, MaxAttempts: 2})
		later := b.enqueue(client.Job{Type: "greet", RunAt: time.Now().Add(time.Hour)})
		other := b.enqueue(client.Job{Type: "anything.else"})
		claimed, err := b.store.Claim(b.Context(), jobs.ClaimRequest{Worker: "w", Queues: []string{"cmsjobs"},
			Limit: 10, Lease: time.Minute, Whole: true})
		if err != nil || len(claimed) != 1 {
			b.Fatalf("%d jobs were claimed, want 1: %v", len(claimed), err)
		}
		j := claimed[0].Job
		if j.UUID != r.ID || string(j.Data) != `{"name":"Ann"}` || string(j.Metadata) != `{"by":"me"}` ||
			j.MaxAttempts != 2 || j.Attempt != 1 || claimed[0].Fault != nil {
			b.Errorf("%+v, %v", j, claimed[0].Fault)
		}
		for _, id := range []string{later.ID, other.ID} {
			if rec, err := b.past.Job(b.Context(), id); err != nil || rec.Status != jobs.StatusQueued {
				b.Errorf("%+v, %v", rec, err)
			}
		}
	})
}

// A key that one of both holds keeps the other out, until its job has ended.
func TestUniqueKeysHoldBetweenClientAndService(t *testing.T) {
	everywhere(t, func(b both) {
		for _, names := range []struct{ id, key string }{{"", "k"}, {"0190aaaa-bbbb-7ccc-8ddd-eeeeffff0002", ""},
			{"0190aaaa-bbbb-7ccc-8ddd-eeeeffff0003", strings.Repeat("ü", 95)}} {
			ask, own := client.Job{Type: "greet", ID: names.id, UniqueKey: names.key},
				jobs.Spec{Type: "greet", UUID: names.id, UniqueKey: names.key}
			first := b.enqueue(ask)
			if r := b.enqueueByStore(own); first.Existing || !r.Existing || r.UUID != first.ID {
				b.Errorf("%v: the client made %+v, then the service %+v", names, first, r)
			}
			if again := b.enqueue(ask); !again.Existing || again.ID != first.ID {
				b.Errorf("%v: the client again: %+v", names, again)
			}
			b.runAll()
			if names.id != "" {
				if r := b.enqueue(ask); !r.Existing {
					b.Errorf("%v: a job that ended is enqueued again", names)
				}
				continue
			}
			made := b.enqueueByStore(own)
			if r := b.enqueue(ask); made.Existing || !r.Existing || r.ID != made.UUID {
				b.Errorf("%v: the service made %+v, then the client %+v", names, made, r)
			}
			b.db.MustExec("DELETE FROM bb_jobs") // by hand, as PHP's queue:clear does
			b.enqueueByStore(jobs.Spec{Type: "greet"})
			b.db.MustExec(fmt.Sprintf("UPDATE bb_jobs SET id = %d", made.ID)) // the number came again, for another job
			if r := b.enqueue(ask); r.Existing {
				b.Errorf("%v: the key of a job that is gone is held", names)
			}
			b.runAll()
		}
	})
}

// runAll completes every due job.
func (b both) runAll() {
	b.Helper()
	claimed, err := b.store.Claim(b.Context(), jobs.ClaimRequest{Worker: "w", Queues: []string{"cmsjobs"}, Limit: 10,
		Lease: time.Minute, Whole: true})
	if err != nil || len(claimed) == 0 {
		b.Fatalf("%d jobs, %v", len(claimed), err)
	}
	for _, c := range claimed {
		errs, err := b.store.Settle(b.Context(), []jobs.Settlement{{Claimed: c, Outcome: jobs.Completed}})
		if err != nil || errs[0] != nil {
			b.Fatal(errs, err)
		}
	}
}

func TestAJobLivesAndDiesWithItsTransaction(t *testing.T) {
	everywhere(t, func(b both) {
		ctx := b.Context()
		b.db.MustExec("CREATE TABLE orders (id INT PRIMARY KEY)")
		type transaction interface {
			client.Tx
			Commit() error
			Rollback() error
		}
		begin := map[string]func() (transaction, error){
			"database/sql": func() (transaction, error) { return b.db.DB.DB.BeginTx(ctx, nil) },
			"sqlx": func() (transaction, error) {
				return sqlx.NewDb(b.db.DB.DB, b.db.Driver).BeginTxx(ctx, nil)
			},
		}
		n := 0
		for of, make := range begin {
			for _, commit := range []bool{true, false} {
				n++
				tx, err := make()
				if err != nil {
					b.Fatal(err)
				}
				if _, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO orders VALUES (%d)", n)); err != nil {
					b.Fatal(err)
				}
				list, err := b.client.EnqueueTx(ctx, tx, client.Job{Type: "greet"},
					client.Job{Type: "greet", UniqueKey: fmt.Sprint(of, commit)})
				if err != nil || len(list) != 2 {
					b.Fatal(list, err)
				}
				end := tx.Rollback
				if commit {
					end = tx.Commit
				}
				if err := end(); err != nil {
					b.Fatal(err)
				}
				var orders int
				if err := b.db.Get(&orders, fmt.Sprintf("SELECT COUNT(*) FROM orders WHERE id = %d", n)); err != nil ||
					(orders == 1) != commit {
					b.Errorf("%s, committed %t: %d orders, %v", of, commit, orders, err)
				}
				for _, r := range list {
					if _, err := b.past.Job(ctx, r.ID); (err == nil) != commit {
						b.Errorf("%s, committed %t: %v", of, commit, err)
					}
				}
			}
		}
	})
}

// Twenty callers at once want one key: one job comes of it, and nobody hears of a deadlock.
func TestCallersAtOnceMakeOneJob(t *testing.T) {
	everywhere(t, func(b both) {
		for round := range 3 {
			j := client.Job{Type: "greet", ID: fmt.Sprintf("0190aaaa-bbbb-7ccc-8ddd-eeeeffff1%03d", round),
				UniqueKey: fmt.Sprint("key ", round)}
			made := make(chan error, 20)
			for range cap(made) {
				go func() {
					r, err := b.client.Enqueue(b.Context(), j)
					if err == nil && r.ID != j.ID {
						err = fmt.Errorf("the receipt names %s", r.ID)
					}
					made <- err
				}()
			}
			for range cap(made) {
				if err := <-made; err != nil {
					b.Error(err)
				}
			}
			var n int
			if err := b.db.Get(&n, "SELECT COUNT(*) FROM bb_jobs"); err != nil || n != round+1 {
				b.Errorf("%d jobs after %d rounds, %v", n, round+1, err)
			}
		}
	})
}

// Two transactions want a key that a third has locked, by the client and by the service. Neither
// is undone by a deadlock when it is free: the second waits for the first.
func TestTransactionsStandInLineForAKey(t *testing.T) {
	everywhere(t, func(b both) {
		if b.db.Engine == jobstest.SQLite {
			b.Skip("a transaction that writes is alone in the database")
		}
		enqueue := map[string]func(tx *sqlx.Tx) (existing bool, err error){
			"client": func(tx *sqlx.Tx) (bool, error) {
				r, err := b.client.EnqueueTx(b.Context(), tx, client.Job{Type: "greet", UniqueKey: "one"})
				return err == nil && r[0].Existing, err
			},
			"store": func(tx *sqlx.Tx) (bool, error) {
				r, err := b.store.EnqueueTx(b.Context(), tx, jobs.Spec{Type: "greet", UniqueKey: "one"})
				return err == nil && r[0].Existing, err
			},
		}
		b.enqueue(client.Job{Type: "greet", UniqueKey: "one"})
		for name, enqueue := range enqueue {
			holds := b.db.MustBegin()
			defer holds.Rollback() //nolint:errcheck // it is committed below
			holds.MustExec("UPDATE cmsjobs_unique SET created_at = created_at + 1")
			ended := make(chan error, 2)
			for range cap(ended) {
				go func() {
					ended <- database.InTx(b.Context(), b.db.DB, "enqueuing", func(tx *sqlx.Tx) error {
						if existing, err := enqueue(tx); err != nil || !existing {
							return fmt.Errorf("not to be repeated: the job was there: %t, %v", existing, err)
						}
						return nil
					})
				}()
			}
			b.db.AwaitLocks(b, cap(ended))
			if err := holds.Commit(); err != nil {
				b.Fatal(err)
			}
			for range cap(ended) {
				if err := <-ended; err != nil {
					b.Errorf("%s: %v", name, err)
				}
			}
		}
	})
}

// A priority that the table has no column for is refused, and nothing is written.
func TestAPriorityNeedsItsColumn(t *testing.T) {
	everywhere(t, func(b both) {
		_, err := b.client.Enqueue(b.Context(), client.Job{Type: "greet", Priority: 3})
		if b.layout == tables.Extended && err != nil || b.layout == tables.Stock && !errors.Is(err, client.ErrInvalid) {
			b.Errorf("%v", err)
		}
		var n int
		if err := b.db.Get(&n, "SELECT COUNT(*) FROM bb_jobs"); err != nil || (n == 1) != (b.layout == tables.Extended) {
			b.Errorf("%d jobs, %v", n, err)
		}
	})
}

// TestBothTakeTheSameNamesOfQueues holds the client's copy of the rule against the service's.
func TestBothTakeTheSameNamesOfQueues(t *testing.T) {
	db := jobstest.Migrated(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, "bb_"); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, db)
	for _, name := range []string{"mail", "a.b:c/d_e-F9", strings.Repeat("q", 191), strings.Repeat("q", 192), "a b", "a\n",
		"höchste", "a\x00", "{default}", "<b>", "\xff"} {
		_, err := c.Enqueue(t.Context(), client.Job{Type: "cache.clear", Queue: name})
		want := jobs.CheckQueue(name)
		if (err == nil) != (want == nil) || (err == nil) == errors.Is(err, client.ErrInvalid) {
			t.Errorf("%q: the client says %v, the service %v", name, err, want)
		}
	}
}
