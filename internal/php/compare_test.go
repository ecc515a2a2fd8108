//go:build unix

package php_test

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// probes are jobs that misbehave, and what is set of each.
var probes = []struct{ name, set string }{
	{"throw", `{"tries":3,"backoff":[1,2]}`},
	{"until", `{}`},
	{"release", `{"tries":5}`},
	{"release-then-throw", `{"tries":1}`},
	{"fail", `{"tries":3}`},
	{"delete", `{}`},
	{"delete-then-fail", `{}`},
	{"sleep", `{"tries":2,"timeout":1}`},
	{"sleep-fail", `{"tries":5,"timeout":1,"failOnTimeout":true}`},
	{"hang", `{"tries":1,"timeout":1}`},
	{"exit", `{"tries":2}`},
	{"oom", `{"tries":2}`},
	{"segv", `{"tries":2}`},
	{"print", `{}`},
	{"dbkill", `{"tries":1}`},
	{"dbkill-in-tx", `{"tries":1}`},
	{"overlap", `{"tries":3}`},
	{"encrypted", `{}`},
	{"unique", `{}`},
	{"chain", `{}`},
	{"batch", `{"tries":1}`},
	{"missing", `{}`},
	{"child", `{}`},
	{"child-exit", `{"tries":2}`},
}

// stock runs Laravel's own worker on a queue, started again when it ends, until
// the queue is empty.
func (s *site) stock(queue string, limit time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			command := s.artisan(s.options("--queue=" + queue)...)
			_ = exec.CommandContext(ctx, command[0], command[1:]...).Run() // jobs end it
		}
	})
	s.drained(queue, limit)
	time.Sleep(200 * time.Millisecond) // the last events
	cancel()
	group.Wait()
}

// better are the probes that end otherwise than under queue:work, each with its
// reason, and their events under cmsjobs.
var better = map[string]struct {
	why    string
	events []string
}{
	"hang": {"queue:work lets a job that ignores SIGALRM run on and calls it processed",
		[]string{"JobProcessing", "run 1", "JobProcessing", "failed() " + maxAttempts, "JobFailed " + maxAttempts,
			"JobExceptionOccurred " + maxAttempts}},
	"release-then-throw": {"queue:work writes a failed job and runs it again, which then dies on the UUID that " +
		"failed_jobs has",
		[]string{"JobProcessing", "run 1", "failed() RuntimeException", "JobFailed RuntimeException",
			"JobExceptionOccurred RuntimeException"}},
	"dbkill-in-tx": {"queue:work cannot delete the row on its dead connection, and names the wrong cause after " +
		"retry_after",
		[]string{"JobProcessing", "run 1", "failed() " + queryException, "JobFailed " + queryException,
			"JobExceptionOccurred " + queryException}},
}

const (
	maxAttempts    = `Illuminate\Queue\MaxAttemptsExceededException`
	queryException = `Illuminate\Database\QueryException`
)

func TestJobsBehaveAsUnderQueueWork(t *testing.T) {
	jobstest.EachMySQL(t, testJobsBehaveAsUnderQueueWork)
}

func testJobsBehaveAsUnderQueueWork(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine, 4*time.Second)
	var args []string
	for _, p := range probes {
		args = append(args, p.name, p.set)
	}
	s.push("stock", args...)
	s.stock("stock", 5*time.Minute)
	stock, stockTables := s.events(), s.outcomes("stock")
	s.push("ours", args...)
	c := s.config("ours")
	c.Processes = 2
	stop := s.start(c)
	s.drained("ours", 5*time.Minute)
	stop()
	ours, ourTables := s.events(), s.outcomes("ours")
	for _, p := range probes {
		want := stock[p.name]
		if b, named := better[p.name]; named {
			want = b.events
		}
		if !slices.Equal(want, ours[p.name]) {
			t.Errorf("%s:\n  %s\nwant\n  %s", p.name, strings.Join(ours[p.name], "\n  "), strings.Join(want, "\n  "))
		}
	}
	for i, want := range stockTables {
		if !slices.Contains(ourTables, want) {
			t.Errorf("the tables have %q, queue:work leaves %q", ourTables[min(i, len(ourTables)-1)], want)
		}
	}
	for cause, n := range map[string]int{"exit() was called": 2, "Allowed memory size of": 1,
		"signal: segmentation fault": 1, "killed: it went on after its time-out": 1} {
		if got := s.count("failed_jobs WHERE queue = 'ours' AND exception LIKE ?", "%The attempt before ended so: "+
			cause+"%"); got != n {
			t.Errorf("%d failed jobs name the cause %q, want %d", got, cause, n)
		}
	}
}

// outcomes are what a queue's jobs left: classes in failed_jobs but of those that
// end better, and batches.
func (s *site) outcomes(queue string) (list []string) {
	s.t.Helper()
	var failed []struct{ Payload, Exception string }
	if err := s.db.Select(&failed, "SELECT payload, exception FROM failed_jobs WHERE queue = ? ORDER BY payload",
		queue); err != nil {
		s.t.Fatal(err)
	}
	for _, f := range failed {
		name := probeName.FindStringSubmatch(f.Payload)
		class, _, _ := strings.Cut(f.Exception, ":")
		if name == nil {
			list = append(list, class)
		} else if _, otherwise := better[name[1]]; !otherwise {
			list = append(list, name[1]+" "+class)
		}
	}
	var batch struct{ Total, Pending, Failed int }
	if err := s.db.Get(&batch, "SELECT total_jobs AS total, pending_jobs AS pending, failed_jobs AS failed FROM "+
		"job_batches WHERE options LIKE ?", "%"+queue+"%"); err != nil {
		s.t.Fatal(err)
	}
	return append(list, fmt.Sprintf("batch %+v", batch))
}

var probeName = regexp.MustCompile(`s:4:\\"what\\";s:\d+:\\"([a-z-]+)\\"`)
