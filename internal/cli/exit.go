package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/jobs"

	"github.com/cmsjobs/cmsjobs/internal/app"
)

// Exit codes. Supervisors and scripts rely on them.
const (
	exitFault    = 1  // something went wrong; the message says what
	exitUsage    = 2  // wrong words, or a fault in the configuration
	exitDatabase = 3  // the database cannot be reached or used
	exitNotFound = 4  // nothing has the id that was asked for
	exitMemory   = 12 // the worker grew over its limit: start it again
	exitStuck    = 13 // a handler did not stop: start it again
)

const exitHelp = `Exit codes: 0 done, or stopped on request · 1 failure · 2 wrong usage or configuration · 3 database not usable ·
4 not found · 12 memory limit reached, start again · 13 a handler is stuck, start again`

func exitCode(err error) int {
	var usage app.UsageError
	var faults config.Faults
	var database app.DatabaseError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, jobs.ErrMemory):
		return exitMemory
	case errors.Is(err, jobs.ErrStuck):
		return exitStuck
	case errors.As(err, &usage), errors.As(err, &faults):
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
