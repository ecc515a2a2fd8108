package php_test

import (
	"context"
	"fmt"
	"os/exec"
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

// stock runs Laravel's own workers on a queue, started again when they end, until
// the queue is empty.
func (s *site) stock(queue string, processes int, limit time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for range processes {
		group.Go(func() {
			for ctx.Err() == nil {
				command := s.artisan(s.options("--queue=" + queue)...)
				_ = exec.CommandContext(ctx, command[0], command[1:]...).Run() // jobs end it
			}
		})
	}
	s.drained(queue, limit)
	time.Sleep(200 * time.Millisecond) // the last events
	cancel()
	group.Wait()
}

func TestJobsBehaveAsUnderQueueWork(t *testing.T) {
	jobstest.EachMySQL(t, testJobsBehaveAsUnderQueueWork)
}

func testJobsBehaveAsUnderQueueWork(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine, 4*time.Second)
	pushed := func(queue string) {
		var args []string
		for _, p := range probes {
			args = append(args, p.name, p.set)
		}
		s.push(queue, args...)
	}
	pushed("stock")
	s.stock("stock", 2, 5*time.Minute)
	stock := s.events()
	pushed("ours")
	c := s.config("ours")
	c.Processes = 2
	stop := s.start(c)
	s.drained("ours", 5*time.Minute)
	stop()
	ours := s.events()
	for _, name := range sorted(stock) {
		a, b := fmt.Sprint(strings.Join(stock[name], "\n  ")), strings.Join(ours[name], "\n  ")
		if a != b {
			t.Errorf("%s: under queue:work\n  %s\nunder cmsjobs\n  %s", name, a, b)
		}
	}
}
