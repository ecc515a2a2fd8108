//go:build unix

package php_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/php"
	"github.com/cmsjobs/cmsjobs/migrations"
)

// rig is a pool whose processes are children of this test's program.
type rig struct {
	*site
	log  *jobstest.Log
	stop func()
}

// newRig has n rows in the queue.
func newRig(t *testing.T, n int, payload string) *rig {
	t.Helper()
	return rigOn(t, jobstest.SQLite, n, payload)
}

func rigOn(t *testing.T, engine jobstest.Engine, n int, payload string) *rig {
	t.Helper()
	r := &rig{site: &site{t: t, db: jobstest.Open(t, engine), dir: t.TempDir()}, log: new(jobstest.Log)}
	db, err := database.Connect(context.Background(), database.ConnectOptions{DSN: r.db.DSN})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	r.db.DB = db
	if err := migrations.Up(context.Background(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := tables.CreateTables(context.Background(), db, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	for range n {
		db.MustExec(db.Rebind("INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES "+
			"('default', ?, 0, 1, 1)"), payload)
	}
	return r
}

// be starts the pool with processes of one behaviour.
func (r *rig) be(behaviour string, change func(*php.Config)) {
	r.t.Helper()
	r.stop = r.start(r.config(behaviour, change))
}

// config is that of a pool whose processes have one behaviour.
func (r *rig) config(behaviour string, change func(*php.Config)) php.Config {
	r.t.Helper()
	source, err := sourceOn(r.db.DB)
	if err != nil {
		r.t.Fatal(err)
	}
	c := php.Config{Source: source, Queue: "default", Command: []string{"env", "CHILD=" + behaviour, "CHILD_DIR=" +
		r.dir, os.Args[0]}, Connection: "database",
		Worker: "test:1", Now: time.Now, Logger: slog.New(slog.NewTextHandler(r.log, nil)), Grace: time.Second}
	if change != nil {
		change(&c)
	}
	r.t.Cleanup(func() {
		if r.t.Failed() {
			r.t.Log(r.log)
		}
	})
	return c
}

const laravels = `{"uuid":"u","displayName":"App\\Job","job":"Illuminate\\Queue\\CallQueuedHandler@call","data":{}}`

func TestAJobThatItsProcessHasNotReadIsNotCounted(t *testing.T) {
	r := newRig(t, 1, laravels)
	r.be("die unread", nil)
	r.drained("default", time.Minute)
	r.stop()
	if !strings.Contains(r.log.String(), "php.process_ended") {
		t.Fatal("the first process did not die")
	}
	if n := r.count("cmsjobs_runs WHERE outcome = 'completed' AND attempt = 1"); n != 1 ||
		r.count("cmsjobs_runs") != 1 {
		t.Errorf("%d runs of attempt 1, %d in all", n, r.count("cmsjobs_runs"))
	}
}

func TestAProcessThatDoesNotAskGetsNothing(t *testing.T) {
	r := newRig(t, 20, laravels)
	r.be("silent", nil)
	time.Sleep(time.Second) // nothing must happen
	if n := r.count("jobs WHERE reserved_at IS NOT NULL OR attempts > 0"); n != 0 {
		t.Errorf("%d rows are claimed for a process that asks for none", n)
	}
	r.stop()
}

// Rows claimed for processes that ask no more go back, uncounted.
func TestWhatNobodyAsksForGoesBack(t *testing.T) {
	r := newRig(t, 40, laravels)
	r.be("long at last", nil)
	r.await("jobs are claimed ahead", time.Minute, func() bool {
		return r.count("cmsjobs_runs") == 5 && r.count("jobs WHERE attempts = 1") > 1
	})
	r.await("one row is in hand, and no other is reserved", 10*time.Second, func() bool {
		return r.count("jobs WHERE attempts = 1") == 1 && r.count("jobs WHERE reserved_at IS NULL") == 34
	})
	r.stop() // it is killed after the grace period: the attempt counts, no crash of the job is recorded
	if a, b := r.count("jobs WHERE attempts = 1 AND reserved_at IS NULL"),
		r.count("cmsjobs_runs WHERE outcome = 'crashed'"); a != 1 || b != 0 {
		t.Errorf("%d rows released with their attempt, %d crashes", a, b)
	}
}

func TestAJobThatGoesOnAfterItsTimeoutIsKilledWithItsChildren(t *testing.T) {
	r := newRig(t, 1, strings.Replace(laravels, `"data"`, `"timeout":1,"backoff":60,"data"`, 1))
	r.be("go on", nil)
	var how string
	r.await("the run has ended", time.Minute, func() bool {
		return r.db.Get(&how, "SELECT error FROM cmsjobs_runs") == nil
	})
	if !strings.Contains(how, "went on after its time-out") ||
		r.count("jobs WHERE attempts = 1 AND reserved_at IS NULL") != 1 {
		t.Errorf("the run ended so: %s", how)
	}
	files, _ := filepath.Glob(filepath.Join(r.dir, "[0-9]*"))
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(string(text))
	r.await("the job's child is dead", 10*time.Second, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil && syscall.Kill(pid, 0) != nil || strings.Contains(string(stat), ") Z ")
	})
	r.stop()
}

func TestAJobThatKillsItsProcessIsFailed(t *testing.T) {
	for behaviour, crashes := range map[string]int{"crash": 2, "crash always": 3} {
		t.Run(behaviour, func(t *testing.T) {
			r := newRig(t, 1, laravels)
			r.be(behaviour, func(c *php.Config) { c.MaxCrashes = 2 })
			r.drained("default", time.Minute)
			r.stop()
			var text string
			if err := r.db.Get(&text, "SELECT exception FROM failed_jobs"); err != nil ||
				!strings.Contains(text, fmt.Sprintf("killed its PHP process %d times", crashes)) {
				t.Errorf("failed_jobs has %q, %v", text, err)
			}
			if n := r.count("cmsjobs_runs WHERE outcome = 'crashed' AND error LIKE '%exit status 7%'"); n != crashes {
				t.Errorf("%d crashes in the history, want %d", n, crashes)
			}
		})
	}
}

// What a process has said last counts, however soon it is gone, and though a child of
// its job holds the pipe open.
func TestTheFinalMessageOfAProcessIsHeard(t *testing.T) {
	const n = 10
	r := newRig(t, n, laravels)
	r.be("final message", nil)
	r.drained("default", time.Minute)
	r.stop()
	files, _ := filepath.Glob(filepath.Join(r.dir, "[0-9]*"))
	for _, name := range files { // the children
		if text, err := os.ReadFile(name); err == nil {
			pid, _ := strconv.Atoi(string(text))
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone already
		}
	}
	if a, b := r.count("cmsjobs_runs WHERE outcome = 'completed'"), r.count("cmsjobs_runs"); a != n || b != n ||
		len(files) != n {
		t.Errorf("%d of %d runs are completed, of %d jobs in %d processes", a, b, n, len(files))
	}
}

func TestAProcessThatSpeaksOtherwiseIsEndedAndNamed(t *testing.T) {
	for behaviour, says := range map[string]string{"old": "speaks version 99", "garbage": "what is no message"} {
		t.Run(behaviour, func(t *testing.T) {
			r := newRig(t, 1, laravels)
			r.be(behaviour, nil)
			r.await("the log says so", time.Minute, func() bool { return strings.Contains(r.log.String(), says) })
			r.stop()
			if n := r.count("jobs WHERE attempts = 0 AND reserved_at IS NULL"); n != 1 {
				t.Error("the row is not as it was")
			}
		})
	}
}

// A wake-up has a job found at once, though it comes while the queue is looked at.
func TestAWakeUpFindsTheJob(t *testing.T) {
	r, wakeUps := newRig(t, 0, laravels), make(chan struct{})
	looks := &slowLooks{begun: make(chan struct{}, 8), may: make(chan struct{})}
	r.be("take its time", func(c *php.Config) {
		looks.Source = c.Source
		c.Source, c.Wake, c.Poll = looks, wakeUps, time.Hour
	})
	<-looks.begun
	r.db.MustExec("INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES ('default', ?, 0, "+
		"1, 1)", laravels)
	wakeUps <- struct{}{} // the look under way is as one that was before the row
	looks.may <- struct{}{}
	close(looks.may)
	r.drained("default", time.Minute)
	r.stop()
}

// slowLooks finds nothing at first, when may receives.
type slowLooks struct {
	php.Source
	begun, may chan struct{}
	looked     atomic.Bool
}

func (s *slowLooks) Claim(ctx context.Context, r php.Request) ([]php.Job, error) {
	if s.looked.Swap(true) {
		return s.Source.Claim(ctx, r)
	}
	s.begun <- struct{}{}
	<-s.may
	return nil, nil
}
