package history_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/history"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// TestBacklogsAreSeenAtBothEnds hides a due job behind 5,000 delayed ones, and
// one behind them.
func TestBacklogsAreSeenAtBothEnds(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			db := jobstest.Migrated(t, engine)
			if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
				t.Fatal(err)
			}
			found, err := tables.Open(t.Context(), db.DB, tables.Options{Registry: jobs.NewRegistry(),
				DefaultQueue: "cmsjobs"})
			if err != nil {
				t.Fatal(err)
			}
			past := history.New(found)
			now := time.Now().Unix()
			rows := make([]string, 5000)
			for i := range rows {
				rows[i] = fmt.Sprintf(`('bulk', '{"type":"known.type"}', 0, NULL, %d, %d)`, now+86400, now)
			}
			const insert = "INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at) VALUES "
			db.MustExec(insert + strings.Join(rows, ", "))
			due := func(queue, payload string, age int64) string {
				return fmt.Sprintf("('%s', '%s', 0, NULL, %d, %d)", queue, payload, now-age, now-age)
			}
			db.MustExec(insert +
				strings.Join([]string{due("bulk", `{"type":"known.type"}`, 600), due("bulk", `{"type":"no.such"}`, 900),
					due("php",
						`{"displayName":"App\\\\Jobs\\\\Send","job":"Illuminate\\\\Queue\\\\CallQueuedHandler@call"}`,
						900), due("broken", "no JSON", 300)}, ", "))
			list, err := past.Backlogs(t.Context(), func(kind string) bool { return kind == "known.type" })
			if err != nil || len(list) != 3 {
				t.Fatalf("%+v, %v", list, err)
			}
			broken, bulk, php := list[0], list[1], list[2]
			if bulk.Due != 1 || bulk.OldestDue < 10*time.Minute || bulk.Unknown["no.such"] != 1 ||
				bulk.OldestUnknown < 15*time.Minute {
				t.Errorf("%+v", bulk)
			}
			if php.Due != 0 || len(php.Unknown) != 0 {
				t.Errorf("PHP's own: %+v", php)
			}
			if broken.Unknown["(unreadable)"] != 1 {
				t.Errorf("unreadable: %+v", broken)
			}
			if v, err := past.Volume(t.Context(), 1000); err != nil || v.Waiting != 1001 {
				t.Errorf("%+v %v", v, err)
			}
		})
	}
}

// TestAReadOnlyServerIsCalledSo: the driver alone says "bad connection".
func TestAReadOnlyServerIsCalledSo(t *testing.T) {
	jobstest.EachMySQL(t, testAReadOnlyServerIsCalledSo)
}

func testAReadOnlyServerIsCalledSo(t *testing.T, engine jobstest.Engine) {
	server := jobstest.Own(t, engine)
	root := server.RootMySQL(t)
	for _, statement := range []string{"CREATE DATABASE site", "CREATE TABLE site.t (a INT) ENGINE=InnoDB",
		"CREATE USER cms@'%' IDENTIFIED BY 'cms'", "GRANT ALL ON site.* TO cms@'%'"} {
		if _, err := root.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	db, err := database.Connect(t.Context(), database.ConnectOptions{
		DSN: fmt.Sprintf("mysql://cms:cms@127.0.0.1:%d/site", server.Port)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := root.Exec("SET GLOBAL read_only = 1"); err != nil {
		t.Fatal(err)
	}
	writes := map[string]func() error{
		"a statement": func() error { _, err := db.Exec("INSERT INTO t VALUES (1)"); return err },
		"arguments":   func() error { _, err := db.Exec("INSERT INTO t VALUES (?)", 1); return err },
		"a prepared one": func() error {
			stmt, err := db.Preparex("INSERT INTO t VALUES (?)")
			if err != nil {
				return err
			}
			defer stmt.Close()
			_, err = stmt.Exec(1)
			return err
		},
		"a transaction": func() error { return inTransaction(db) },
	}
	for name, write := range writes {
		err := write()
		if !errors.Is(err, database.ErrReadOnly) || !database.SaysReadOnly(err) ||
			!strings.Contains(err.Error(), "read-only") || database.Classify(err) != database.Elsewhere {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := root.Exec("SET GLOBAL read_only = 0"); err != nil {
		t.Fatal(err)
	}
	for name, write := range writes {
		if err := write(); err != nil {
			t.Errorf("%s, afterwards: %v", name, err)
		}
	}
}

func inTransaction(db *sqlx.DB) error {
	tx, err := db.Beginx()
	if err != nil {
		return err
	}
	if _, err := tx.Exec("INSERT INTO t VALUES (2)"); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// TestManyQueuesAreCountedTogether has 250 queues of other programs beside one small queue
// that is paused: it stays among those that are listed, and nothing is counted twice.
func TestManyQueuesAreCountedTogether(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			db := jobstest.Migrated(t, engine)
			if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
				t.Fatal(err)
			}
			found, err := tables.Open(t.Context(), db.DB, tables.Options{Registry: jobs.NewRegistry(),
				DefaultQueue: "cmsjobs"})
			if err != nil {
				t.Fatal(err)
			}
			past := history.New(found)
			rows := []string{`('zz', '{"type":"a.b"}', 0, NULL, 1, 1)`}
			for i := range 250 {
				for range 2 {
					rows = append(rows, fmt.Sprintf(`('tenant-%03d', '{"displayName":"Send","job":"x@call"}', 0, NULL, 1, 1)`, i))
				}
			}
			db.MustExec("INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at) VALUES " +
				strings.Join(rows, ", "))
			if err := past.Pause(t.Context(), "zz", "a test"); err != nil {
				t.Fatal(err)
			}
			s, err := past.Stats(t.Context())
			if err != nil || len(s.Queues) != jobs.MaxQueues || s.MoreQueues != 51 || s.Waiting() != 501 ||
				s.More.Waiting() != 102 {
				t.Errorf("%d queues, %d more with %d jobs, %d jobs in all, %v", len(s.Queues), s.MoreQueues,
					s.More.Waiting(), s.Waiting(), err)
			}
			if last := s.Queues[len(s.Queues)-1]; last.Queue != "zz" || !last.Paused || last.Queued != 1 {
				t.Errorf("the paused queue is %+v", last)
			}
		})
	}
}
