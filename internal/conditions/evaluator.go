package conditions

import (
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// State is a condition as it stands.
type State struct {
	Definition
	Active bool
	// Here says that this process measured it; false for a local condition that
	// another process saw.
	Here   bool
	Since  time.Time // of the last change; zero where that is not known
	Detail string
	// Err says why it could not be measured; Active is then as it was.
	Err error
}

// Evaluator measures conditions and keeps their state. It is safe for
// concurrent use.
type Evaluator struct {
	c         Config
	began     time.Time
	installed time.Time

	mu     sync.Mutex // one evaluation at a time
	rounds int
	last   []State
	at     time.Time // of last, by our clock
	ready  bool      // the rows of cmsjobs_conditions are there
	slow   map[string]reading
	clock  struct {
		local, database, jumped time.Time
		what                    string
	}
	// onTimeUntil is before which no schedule entry can be overdue.
	onTimeUntil time.Time
	// outbox holds changes that people are still to be notified of; deserted says
	// that no worker was alive at the last look, and some did not sign off. It is
	// looked at for a Pinger only.
	outbox   []message
	deserted bool
	// untold are local conditions that hold and could not be written down.
	untold map[string]*untold
	// unwritten are conditions whose last change could not be written down, which was logged.
	unwritten map[string]bool
}

// reading is what one measurement showed.
type reading struct {
	holds  bool
	detail string
	err    error // it could not be measured: nothing is known
	old    bool  // it was not measured this time
}

// message is a change that people are still to be notified of. A direct one goes
// to chats only.
type message struct {
	Change
	direct bool
}

// untold is a condition that began while the database took no change.
type untold struct {
	since  time.Time
	detail string
	told   bool // chats were notified at once
}

// limit is the threshold of a condition.
func (e *Evaluator) limit(name string) Limit {
	if l, said := e.c.Limits[name]; said {
		return l
	}
	d, _ := find(name)
	return d.Limit
}

func (e *Evaluator) id() string {
	if e.c.Process == nil {
		return ""
	}
	return e.c.Process.ID
}

func holds(format string, args ...any) reading {
	return reading{holds: true, detail: jobs.PlainText(display.Sprintf(format, args...), 900)}
}

func unmeasured(err error) reading { return reading{err: err} }
