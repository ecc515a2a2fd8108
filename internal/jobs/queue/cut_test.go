package queue

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables/tablestest"
)

// The network is cut again and again while jobs are enqueued and settled. An
// error on a write is not "it did not happen": repeated, each is there once.
func TestNothingIsLostOrDoubledWhenAnswersAre(t *testing.T) {
	jobstest.EachMySQL(t, testNothingIsLostOrDoubledWhenAnswersAre)
}

func testNothingIsLostOrDoubledWhenAnswersAre(t *testing.T, engine jobstest.Engine) {
	port := jobstest.Shared(t, engine).Port
	db := tablestest.Variant{Engine: engine, Layout: tables.Stock}.Database(t)
	proxy := jobstest.NewProxy(t, port)
	cutDB, err := database.Connect(context.Background(), database.ConnectOptions{
		DSN: strings.Replace(db.DSN, fmt.Sprint(":", port), fmt.Sprint(":", proxy.Port), 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cutDB.Close() })
	s, err := Open(context.Background(), cutDB, tables.Options{Registry: tablestest.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	pace := max(paceOf(t, s), 7*time.Millisecond)
	db.MustExec("DELETE FROM cmsjobs_runs")
	stop, cut := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(cut)
		for {
			select {
			case <-stop:
				return
			case <-time.After(pace):
				proxy.Cut()
			}
		}
	}()
	unclear := 0
	insist := func(try func() error) {
		for range 1000 {
			err := try()
			if err == nil {
				return
			}
			if !database.Classify(err).Trouble() {
				t.Fatalf("%v is %v", err, database.Classify(err))
			}
			unclear++
		}
		t.Fatal("never answered")
	}
	const total = 60
	for i := range total {
		n := tablestest.Job(fmt.Sprint(i)).Named(uuid.NewString())
		insist(func() error { _, err := s.Enqueue(ctx, n); return err })
	}
	deadline := time.Now().Add(3 * time.Minute)
	for left := total; left > 0 && time.Now().Before(deadline); {
		got, err := s.Claim(ctx, jobs.ClaimRequest{Worker: "w", Queues: []string{"default"}, Limit: 5,
			Lease: 12 * time.Second})
		if err != nil && !database.Classify(err).Trouble() {
			t.Fatal(err)
		}
		var ends []jobs.Settlement
		for _, c := range got {
			ends = append(ends, tablestest.End(c, jobs.Completed))
		}
		insist(func() error { _, err := s.Settle(ctx, ends); return err })
		if err := db.Get(&left, "SELECT COUNT(*) FROM jobs"); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	<-cut
	var rows, uuids, jobsLeft int
	if err := db.QueryRowx("SELECT COUNT(*), COUNT(DISTINCT uuid), (SELECT COUNT(*) FROM jobs) FROM cmsjobs_runs "+
		"WHERE outcome = 'completed'").Scan(&rows, &uuids, &jobsLeft); err != nil {
		t.Fatal(err)
	}
	if rows != total || uuids != total || jobsLeft != 0 {
		t.Errorf("%d completed runs of %d jobs, %d left; want %d, %d, 0", rows, uuids, jobsLeft, total, total)
	}
	var charged int
	if err := db.Get(&charged,
		"SELECT COUNT(*) FROM cmsjobs_runs WHERE attempt > 1 OR outcome = 'crashed'"); err != nil {
		t.Fatal(err)
	}
	if charged > 0 {
		t.Errorf("%d runs were charged to jobs for claims that nobody heard of", charged)
	}
	if unclear == 0 {
		t.Error("no call was ever cut")
	}
	t.Logf("%d calls had no clear answer, cut every %v", unclear, pace)
}

// paceOf is how long a job takes to be enqueued, claimed and settled while nothing is cut:
// cut more often than that, a slow machine would hardly ever come to an end.
func paceOf(t *testing.T, s *Store) time.Duration {
	t.Helper()
	const rounds = 10
	ctx, begun := context.Background(), time.Now()
	for range rounds {
		if _, err := s.Enqueue(ctx, tablestest.Job("0")); err != nil {
			t.Fatal(err)
		}
		got, err := s.Claim(ctx, jobs.ClaimRequest{Worker: "w", Queues: []string{"default"}, Limit: 1, Lease: time.Minute})
		if err != nil || len(got) != 1 {
			t.Fatalf("%d jobs claimed: %v", len(got), err)
		}
		if _, err := s.Settle(ctx, []jobs.Settlement{tablestest.End(got[0], jobs.Completed)}); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(begun) / rounds
}
