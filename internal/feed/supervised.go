package feed

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// aliveEvery is how often a source says that it lives, at least; a source that
	// has said nothing for aliveFor is not trusted.
	aliveEvery = 5 * time.Second
	aliveFor   = 12 * time.Second
	// A source that broke is started again after restartFirst, then after the
	// double, up to restartMost; one that waits for a person after restartSeldom.
	restartFirst  = time.Second
	restartMost   = time.Minute
	restartSeldom = 10 * time.Minute
)

// supervised is a source that is started again whenever it ends.
type supervised struct {
	Source
	w       *Watcher
	partial bool // it tells of some inserts only

	heard  atomic.Int64 // when it last reported, in nanoseconds of Unix; 0: not since it began
	missed atomic.Bool  // a look found what it had not told: see Watcher.judge
	silent bool         // its trouble is in the log
}

// run runs the source until ctx ends.
func (s *supervised) run(ctx context.Context) {
	for wait := restartFirst; ; {
		begun := s.w.o.Now()
		err := s.Run(ctx, s.report)
		worked := s.heard.Swap(0) > 0
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errEnded
		}
		if worked && s.w.o.Now().Sub(begun) > aliveFor {
			wait = restartFirst
		}
		if _, ok := unavailable(err); ok {
			wait = restartSeldom
		}
		s.noteTrouble(err, wait)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, restartMost)
	}
}

// noteTrouble logs why the source does not work, once until it works again.
func (s *supervised) noteTrouble(err error, wait time.Duration) {
	if s.silent {
		return
	}
	s.silent = true
	if u, ok := unavailable(err); ok {
		s.w.o.Logger.Info("change feed not available; new jobs are looked for instead", "event", "feed.unavailable",
			"feed", s.Name(), "error", u.What, "remedy", u.Fix)
		return
	}
	s.w.o.Logger.Warn("change feed lost; new jobs are looked for until it is back", "event", "feed.lost",
		"feed", s.Name(), "retry_in", wait, "error", err)
}

// report takes what the source says.
func (s *supervised) report(r Report) {
	now := s.w.o.Now()
	if first := s.heard.Swap(now.UnixNano()) == 0; first {
		s.w.o.Logger.Info("change feed works", "event", "feed.works", "feed", s.Name())
		s.silent = false
		s.missed.Store(false)
		r = max(r, Inserted) // what came before it began
	}
	if r == Alive {
		return
	}
	select {
	case s.w.hints <- hint{r, s}:
	default: // as many wait as one look answers
	}
}

// trusted says that the source lives and has told all that was found.
func (s *supervised) trusted(now time.Time) bool {
	heard := s.heard.Load()
	return !s.partial && heard > 0 && now.Sub(time.Unix(0, heard)) < aliveFor && !s.missed.Load()
}
