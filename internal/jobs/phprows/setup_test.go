package phprows

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/php"
	"github.com/cmsjobs/cmsjobs/migrations"
)

var bg = context.Background()

const lease = 90 * time.Second

// fixture is a store on a separate database, whose clock a test moves.
type fixture struct {
	*Store
	t  *testing.T
	db *jobstest.Database
	// The database's clock stands at start, moved by ahead; ours goes, moved by lengths.
	start          time.Time
	ahead, lengths time.Duration
}

// each runs a test on every engine, without and with the index for claims.
func each(t *testing.T, test func(f *fixture)) {
	for _, engine := range jobstest.Engines() {
		for _, indexed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/indexed=%t", engine, indexed), func(t *testing.T) {
				test(newFixture(t, engine, indexed))
			})
		}
	}
}

func newFixture(t *testing.T, engine jobstest.Engine, indexed bool) *fixture {
	t.Helper()
	f := &fixture{t: t, db: jobstest.Open(t, engine), start: time.Now()}
	db, err := database.Connect(bg, database.ConnectOptions{DSN: f.db.DSN, MaxConnections: 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	f.db.DB = db
	if err := migrations.Up(bg, db); err != nil {
		t.Fatal(err)
	}
	if _, err := tables.CreateTables(bg, db, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	if indexed {
		f.db.MustExec("CREATE INDEX jobs_due ON jobs (queue, available_at)")
	}
	f.Store = f.another()
	return f
}

// another is a store of another process on the same tables.
func (f *fixture) another() *Store {
	f.t.Helper()
	registry := jobs.NewRegistry()
	jobs.Handle(registry, jobs.Kind[struct{}]{Name: "test.ours"}, func(context.Context, jobs.Job, struct{}) error {
		return nil
	})
	opened, err := tables.Open(bg, f.db.DB, tables.Options{Registry: registry,
		DatabaseClock: func() time.Time { return f.start.Add(f.ahead) }, Clock: func() time.Time {
			return time.Now().Add(f.lengths)
		}})
	if err != nil {
		f.t.Fatal(err)
	}
	s, err := New(opened, "database", "host:1:x")
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// push writes a row as Laravel does.
func (f *fixture) push(queue, payload string) (id int64) {
	f.t.Helper()
	now := f.start.Add(f.ahead).Unix()
	f.exec("INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at) VALUES (?, ?, 0, "+
		"NULL, ?, ?)", queue, payload, now, now)
	if err := f.db.Get(&id, "SELECT MAX(id) FROM jobs"); err != nil {
		f.t.Fatal(err)
	}
	return id
}

func (f *fixture) exec(statement string, args ...any) {
	f.t.Helper()
	if _, err := f.db.Exec(f.db.Rebind(statement), args...); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) count(where string) (n int) {
	f.t.Helper()
	if err := f.db.Get(&n, "SELECT COUNT(*) FROM "+where); err != nil {
		f.t.Fatal(err)
	}
	return n
}

func (f *fixture) claim(n int) []php.Job {
	f.t.Helper()
	f.lengths += time.Minute // each looks at all rows
	list, err := f.Claim(bg, php.Request{Queue: "default", Limit: n, Lease: lease})
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}

// settle writes ends of which each must be taken.
func (f *fixture) settle(ends ...php.End) {
	f.t.Helper()
	results, err := f.Settle(bg, ends)
	if err != nil {
		f.t.Fatal(err)
	}
	for i, err := range results {
		if err != nil {
			f.t.Errorf("end %d: %v", i, err)
		}
	}
}

// payload is what Laravel 8 writes for a job class.
func payload(class, more string) string {
	return fmt.Sprintf(
		`{"uuid":"%s-uuid","displayName":"App\\Jobs\\%s","job":"Illuminate\\Queue\\CallQueuedHandler@call","maxTries":null,"maxExceptions":null,`+
			`"failOnTimeout":false,%s"retryUntil":null,"data":{"commandName":"App\\Jobs\\%s","command":"O:13:\"App\\Jobs\\%s\":0:{}"}}`, class, class, more, class, class)
}
