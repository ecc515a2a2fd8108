package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// commandLine is one call of the program: its words, its streams, its clock.
type commandLine struct {
	app.Process
	out     io.Writer
	in      io.Reader
	environ []string

	global struct {
		file, cms, dsn, logLevel string
		set                      []string
		json                     bool
	}
	strict   bool // --strict of doctor
	unmasked bool // --unmasked of what shows jobs
	outIsTTY bool // out is a terminal
	dry      bool // --dry-run of the command that has one
	// onSecondSignal is called at the second signal: stop without grace.
	onSecondSignal atomic.Pointer[func()]
	// deadline ends the process that long after the first signal; nil where the
	// command has no grace period.
	deadline atomic.Pointer[deadline]
}

// deadline is when a process that was asked to stop ends, whatever its parts
// wait for.
type deadline struct {
	grace time.Duration
	end   func()
}

// stopTail is how long after its grace period a process ends at the latest. The
// worker needs less; a database or a peer that does not answer may hold up the
// other parts.
const stopTail = 950 * time.Millisecond

// stopBy sets the deadline from the configuration.
func (a *commandLine) stopBy(r *app.Services) {
	a.deadline.Store(&deadline{r.Config.Queue.Grace, func() {
		r.Log.Warn("process ends at its deadline while a part of it still waits for an answer",
			"event", "service.deadline")
		os.Exit(0)
	}})
}

// countDown ends the process after the grace period and stopTail; with again
// after stopTail alone.
func (a *commandLine) countDown(again bool) {
	d := a.deadline.Load()
	switch {
	case d == nil:
	case again:
		time.AfterFunc(stopTail, d.end)
	default:
		time.AfterFunc(d.grace+stopTail, d.end)
	}
}

// Exit codes. Supervisors and scripts rely on them.
const (
	exitFault    = 1  // something went wrong; the message says what
	exitUsage    = 2  // wrong words, or a fault in the configuration
	exitDatabase = 3  // the database cannot be reached or used
	exitNotFound = 4  // nothing has the id that was asked for
	exitMemory   = 12 // the worker grew over its limit: start it again
	exitStuck    = 13 // a handler did not stop: start it again
)

const exitHelp = `Exit codes: 0 done, or stopped as told · 1 fault · 2 wrong usage or configuration · 3 database
not usable · 4 not found · 12 memory limit reached, start again · 13 a handler is stuck, start
again`

func exitCode(err error) int {
	var usage app.UsageError
	var faults config.Faults
	var database app.DatabaseError
	var refused *ops.Refusal
	switch {
	case err == nil:
		return 0
	case errors.Is(err, jobs.ErrMemory):
		return exitMemory
	case errors.Is(err, jobs.ErrStuck):
		return exitStuck
	case errors.As(err, &usage), errors.As(err, &faults),
		errors.As(err, &refused) && errors.Is(refused, jobs.ErrInvalid):
		return exitUsage
	case errors.As(err, &database):
		return exitDatabase
	case errors.Is(err, jobs.ErrNotFound):
		return exitNotFound
	}
	return exitFault
}

// abortedBeforeStart is what a service ends with that could not begin. One that was asked
// to stop before its database answered has claimed and lost nothing: it ended
// as its supervisor told it.
func (a *commandLine) abortedBeforeStart(ctx context.Context, err error) error {
	var database app.DatabaseError
	if ctx.Err() == nil || !errors.As(err, &database) && !errors.Is(err, context.Canceled) {
		return err
	}
	fmt.Fprintln(a.Err, "cmsjobs: told to stop before the database answered")
	return nil
}
