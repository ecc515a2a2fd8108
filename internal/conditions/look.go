package conditions

import (
	"context"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// slowRounds is how often slow conditions are measured.
const slowRounds = 5

// look is one evaluation: what several measurements need is read once.
type look struct {
	*Evaluator
	*snapshot
	slow     bool
	readings map[string]reading

	workersRead bool
	workers     []jobs.WorkerRecord
	workersErr  error
}

// fleet are the workers, read when something needs them: none does while nothing
// is queued.
func (l *look) fleet(ctx context.Context) ([]jobs.WorkerRecord, error) {
	if !l.workersRead {
		l.workers, l.workersErr = l.c.Queue.Workers(ctx)
		l.workersRead = true
	}
	return l.workers, l.workersErr
}

// unattended says that no worker is known to be alive.
func (l *look) unattended(ctx context.Context) bool {
	workers, err := l.fleet(ctx)
	return err != nil || !slices.ContainsFunc(workers, func(w jobs.WorkerRecord) bool {
		return w.Alive && w.RunsTypes()
	})
}

func (l *look) set(name string, r reading) {
	if !slices.Contains(l.c.Off, name) {
		l.readings[name] = r
	}
}

// wanted says whether a condition is measured this time.
func (l *look) wanted(name string) bool {
	d, ok := find(name)
	return ok && !slices.Contains(l.c.Off, name) && (l.slow || !d.Slow)
}
