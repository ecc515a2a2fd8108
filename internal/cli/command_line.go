package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/setup"
)

// commandLine is one call of the program: its words, its streams, its clock.
type commandLine struct {
	app.Process
	out     io.Writer
	in      io.Reader
	environ []string
	texts   setup.Texts // of setup; besides it only doctor speaks another language than English

	global struct {
		file, site, cms, dsn, logLevel string
		set                            []string
		json                           bool
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
	a.deadline.Store(a.endingAfter(r.Config.Queue.Grace, r.Log.Warn))
}

func (a *commandLine) endingAfter(grace time.Duration, warn func(string, ...any)) *deadline {
	return &deadline{grace, func() {
		warn("process ends at its deadline while a part of it still waits for an answer",
			"event", "service.deadline")
		os.Exit(0)
	}}
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
	case errors.Is(err, jobs.ErrNotFound):
		return exitNotFound
	case errors.As(err, &usage), errors.As(err, &faults),
		errors.As(err, &refused) && errors.Is(refused, jobs.ErrInvalid):
		return exitUsage
	case errors.As(err, &database):
		return exitDatabase
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

// filterFlags adds the flags that choose jobs, those of the API's filter.
func filterFlags(c *cobra.Command, f *ops.Filter, withStatus bool) {
	if withStatus {
		c.Flags().StringSliceVar(&f.Status, "status", nil, "queued, processing, completed, failed, cancelled")
	}
	c.Flags().StringSliceVar(&f.Type, "type", nil, "types")
	c.Flags().StringSliceVar(&f.Queue, "queue", nil, "queues")
	c.Flags().StringSliceVar(&f.Worker, "worker", nil, "workers that ran or run them: names, or their hosts")
	c.Flags().StringArrayVar(&f.Tag, "tag", nil,
		"tags of PHP's jobs, each with a flag, for example App\\Models\\Order:1041")
	c.Flags().StringVar(&f.Text, "text", "", "text in the payload or the error")
	c.Flags().StringVar(&f.Cause, "cause", "", "fingerprint of a failure (failed groups)")
	c.Flags().StringVar(&f.Since, "since", "", "not before: a time, or so long ago (2h, 3d)")
	c.Flags().StringVar(&f.Until, "until", "", "before: a time, or so long ago")
}

// filter reads the flags of a filter.
func (a *commandLine) filter(f ops.Filter) (jobs.Filter, error) {
	filter, err := f.Parse(a.Now())
	return filter, usage(err)
}

// usage makes a wrong argument of what a parser refuses.
func usage(err error) error {
	if r := (*ops.Refusal)(nil); errors.As(err, &r) && errors.Is(r, jobs.ErrInvalid) {
		return app.UsageError{Err: err}
	}
	return err
}

// pageFlags adds the flags that choose a part of a list.
func pageFlags(c *cobra.Command, p *jobs.Page) {
	limitFlag(c, &p.Limit, ops.DefaultLimit, "how many")
	c.Flags().StringVar(&p.Cursor, "cursor", "", "continue a list where it ended")
}

// unmaskedFlag lets the administrator of the host see what is masked.
func (a *commandLine) unmaskedFlag(c *cobra.Command) *cobra.Command {
	c.PersistentFlags().BoolVar(&a.unmasked, "unmasked", false, "show secrets in payloads and texts, too")
	return c
}

// limitFlag adds --limit: a number from 1.
func limitFlag(c *cobra.Command, into *int, fallback int, usage string) {
	*into = fallback
	c.Flags().Var((*limit)(into), "limit", usage)
}

// limit is a flag's value.
type limit int

// String implements pflag.Value.
func (l *limit) String() string { return strconv.Itoa(int(*l)) }

// Type implements pflag.Value.
func (l *limit) Type() string { return "int" }

// Set implements pflag.Value.
func (l *limit) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return fmt.Errorf("write a number from 1, for example 50")
	}
	*l = limit(n)
	return nil
}
