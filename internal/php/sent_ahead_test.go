//go:build unix

package php_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cmsjobs/cmsjobs/internal/php"
)

// nextJob is what the package prints before a job that was sent ahead.
const nextJob = "\x00cmsjobs: next job\x00\n"

// arrives waits for an order in the pipe.
func (c *child) arrives(most time.Duration) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: 3, Events: unix.POLLIN}}, int(most.Milliseconds()))
	return err == nil && n == 1
}

// leave makes a file of this name; it must be the only one.
func (c *child) leave(name string) {
	if _, err := os.OpenFile(filepath.Join(c.dir, name), os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		_ = os.WriteFile(filepath.Join(c.dir, "twice-"+name), nil, 0o600)
	}
}

// aheadOf is a worker that looks for the next order before it says that a job is done, as
// the package does. Now and then it is not as quick as that, by its behaviour.
func (c *child) aheadOf(behaviour string) {
	id, _ := c.job()
	for n := 1; ; n++ {
		slow := n%12 == 0 // seldom: the average stays short
		c.leave(fmt.Sprint("ran-", id))
		fmt.Println("this is", id)
		if behaviour == "die with more" && n > 4 && c.arrives(50*time.Millisecond) {
			os.Exit(7)
		}
		done := fmt.Sprintf(`"done":{"id":%d,"as":"delete"}`, id)
		if behaviour == "read late" && slow && c.arrives(50*time.Millisecond) {
			time.Sleep(150 * time.Millisecond) // longer than it may be taken, and until it is taken back
		}
		next := childsOrder{}
		if c.arrives(0) {
			next = c.hear()
		}
		if behaviour == "look late" && slow {
			time.Sleep(150 * time.Millisecond) // it is read, and not taken in time
		}
		late := next.late()
		if behaviour == "speak late" && slow {
			time.Sleep(150 * time.Millisecond) // it is taken, and this is not known for long
		}
		switch {
		case next.ID == 0:
			c.say("{" + done + "}")
			id, _ = c.job()
		case late:
			c.leave(fmt.Sprint("late-", next.ID, "-", os.Getpid(), "-", n))
			c.say(fmt.Sprintf(`{%s,"late":%d}`, done, next.Until))
			id, _ = c.job()
		default:
			c.leave(fmt.Sprint("took-", next.ID))
			fmt.Print(nextJob)
			c.say(fmt.Sprintf(`{%s,"took":%d}`, done, next.Until))
			id = next.ID
		}
	}
}

func (r *rig) files(pattern string) int {
	r.t.Helper()
	files, err := filepath.Glob(filepath.Join(r.dir, pattern))
	if err != nil {
		r.t.Fatal(err)
	}
	return len(files)
}

// A job that is sent before its process asks runs once, whatever the process does
// meanwhile, and has its own lines.
func TestJobsThatAreSentAheadRunOnce(t *testing.T) {
	const n = 100
	for behaviour, shows := range map[string]string{"ahead": "took-*", "read late": "late-*", "look late": "late-*",
		"speak late": "took-*"} {
		t.Run(behaviour, func(t *testing.T) {
			r := newRig(t, n, laravels)
			r.be(behaviour, func(c *php.Config) {
				c.Processes, c.Ended = 2, func(e php.End) {
					if len(e.Lines) != 1 || e.Lines[0].Text != fmt.Sprint("this is ", e.Job.Job.ID) {
						t.Errorf("job %d printed %v", e.Job.Job.ID, e.Lines)
					}
				}
			})
			r.drained("default", time.Minute)
			r.stop()
			if ran, twice := r.files("ran-*"), r.files("twice-*"); ran != n || twice != 0 {
				t.Errorf("%d of %d jobs ran, %d of them twice", ran, n, twice)
			}
			if seen := r.files(shows); seen == 0 {
				t.Errorf("no job was %s: the test shows nothing", shows)
			}
			if a, b := r.count("cmsjobs_runs WHERE outcome = 'completed' AND attempt = 1"), r.count("cmsjobs_runs"); a != n ||
				b != n {
				t.Errorf("%d runs of %d are completed at the first attempt, of %d", a, b, n)
			}
			if strings.Contains(r.log.String(), "php.process_ended") {
				t.Error("a process was ended")
			}
		})
	}
}

// What lay in the pipe of a process that died is run by another one, and has lost no attempt.
func TestAJobInThePipeOfADeadProcessIsNotCounted(t *testing.T) {
	const n = 100
	r := newRig(t, n, laravels)
	r.be("die with more", func(c *php.Config) { c.MaxCrashes = 1000 })
	r.await("three processes died", time.Minute, func() bool {
		return r.count("cmsjobs_runs WHERE outcome = 'crashed'") >= 3
	})
	r.stop()
	crashed := r.count("cmsjobs_runs WHERE outcome = 'crashed'")
	if counted := r.count("jobs WHERE attempts > 0"); counted > crashed {
		t.Errorf("%d jobs have lost an attempt, by %d crashes", counted, crashed)
	}
	if late := r.count("cmsjobs_runs WHERE outcome = 'completed' AND attempt > 1"); late > crashed {
		t.Errorf("%d jobs ended at a later attempt, after %d crashes", late, crashed)
	}
}
