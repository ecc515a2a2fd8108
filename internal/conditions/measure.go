package conditions

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// measure takes all readings.
func (l *look) measure(ctx context.Context) {
	if l.down != nil {
		l.set(DatabaseDown, holds("the database does not answer: %v", l.down))
		l.local(nil)
		return
	}
	l.set(DatabaseDown, reading{})
	l.clocks(l.asked, l.now)
	l.local(l.tryWriting(ctx))
	l.queues(ctx)
	if l.wanted(PHPWorker) {
		l.php(ctx)
	}
	l.schedule(ctx)
	l.circuits(ctx)
	l.history(ctx)
	l.backups(ctx)
}

// tryWriting writes this process's heartbeat, and asks whether the jobs table
// takes writes.
func (l *look) tryWriting(ctx context.Context) error {
	err := l.c.Server.TryWriting(ctx)
	if err == nil {
		err = l.heartbeat(ctx)
	}
	if l.c.Writes != nil {
		l.c.Writes.Note("the heartbeat of the process", err)
	}
	return err
}

// local judges what this process could write, and where.
func (l *look) local(tried error) {
	writes := l.c.Writes.failing()
	if l.c.Writes == nil && tried != nil {
		writes["a trial"] = failedWrite{since: time.Time{}, last: l.c.Now(), err: tried}
	}
	var readOnly, full, failing reading
	limit := l.limit(WritesFailing).Duration()
	for _, jobType := range slices.Sorted(maps.Keys(writes)) {
		f := writes[jobType]
		switch {
		case l.c.ReadOnly(f.err):
			readOnly = holds("%sthe server is read-only: writing %s failed: %v", l.onHost(), jobType, f.err)
		case l.c.Full(f.err):
			full = holds("%sthe database's disk is full: writing %s failed: %v", l.onHost(), jobType, f.err)
		}
		if l.c.Now().Sub(f.since) >= limit && !l.readings[DatabaseDown].holds {
			failing = holds("%swriting %s has failed for %s: %v", l.onHost(), jobType, since(l.c.Now(), f.since), f.err)
		}
	}
	l.set(DatabaseReadOnly, readOnly)
	l.set(WritesFailing, failing)
	if !full.holds {
		full = l.folders()
	}
	l.set(DiskFull, full)
}

func since(now, then time.Time) string {
	if then.IsZero() {
		return "one trial"
	}
	return span(now.Sub(then))
}

func (l *look) folders() reading {
	if l.c.Free == nil {
		return reading{}
	}
	limit := l.limit(DiskFull)
	for _, folder := range l.c.Folders {
		free, err := l.c.Free(folder)
		if err == nil && free < limit.Value { // a folder that is not there yet is no full disk
			return holds("%sthe disk of %s has %s left", l.onHost(), folder, bytes(free))
		}
	}
	return reading{}
}

func (l *look) onHost() string {
	if l.c.Process == nil {
		return ""
	}
	return "on " + l.c.Process.Host + ": "
}

// jumpRemembered is how long a jump of a clock counts.
const jumpRemembered = 10 * time.Minute

// clocks compares the database's clock, this host's, and the time that passed
// by the monotonic clock since the last evaluation.
func (l *look) clocks(local, database time.Time) {
	limit := l.limit(ClockJump).Duration()
	skew := database.Sub(local.Round(0))
	if e := l.Evaluator; !e.clock.database.IsZero() {
		passed := local.Sub(e.clock.local) // monotonic
		for name, jump := range map[string]time.Duration{
			"the database's clock": database.Sub(e.clock.database) - passed,
			"this host's clock":    local.Round(0).Sub(e.clock.local.Round(0)) - passed} {
			if jump.Abs() > limit {
				e.clock.jumped, e.clock.what = local, fmt.Sprintf("%s jumped by %s", name, span(jump.Abs()))
			}
		}
	}
	l.clock.local, l.clock.database = local, database
	switch {
	case skew.Abs() > limit:
		l.set(ClockJump, holds("%sthe database's clock and this host's differ by %s", l.onHost(), span(skew.Abs())))
	case !l.clock.jumped.IsZero() && local.Sub(l.clock.jumped) < jumpRemembered:
		l.set(ClockJump, holds("%s%s", l.onHost(), l.clock.what))
	default:
		l.set(ClockJump, reading{})
	}
}

func (l *look) circuits(ctx context.Context) {
	if l.c.Circuits == nil {
		return
	}
	var list []Circuit
	var err error
	if l.snapshot.circuits {
		list, err = l.c.Circuits(ctx)
	}
	switch {
	case err != nil:
		l.set(CircuitOpen, unmeasured(err))
	case len(list) == 0:
		l.set(CircuitOpen, reading{})
	default:
		names := make([]string, len(list))
		for i, c := range list {
			names[i] = fmt.Sprintf("%s (%s)", c.Dependency, c.LastError)
		}
		l.set(CircuitOpen, holds("%s", strings.Join(names, ", ")))
	}
}
