package feed

import (
	"context"
	"slices"
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
	// mostRows is how many rows one call about content names.
	mostRows = 20
	// contentGap is the least time between two calls about content.
	contentGap = 20 * time.Millisecond
)

// supervised is a source that is started again whenever it ends.
type supervised struct {
	Source
	w       *Watcher
	partial bool // it tells of some inserts only

	// What follows belongs to the source's goroutine.
	toldChange, toldAlive time.Time
	untold                bool  // a change
	rows                  []Row // that changed, for the next call; the first of them

	heard  atomic.Int64 // when it last reported, in nanoseconds of Unix; 0: not since it began
	missed atomic.Bool  // a look found what it had not told: see Watcher.judge
	silent bool         // its trouble is in the log
	// needsPerson says that what a person has to do is in the log.
	needsPerson bool
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

// noteTrouble logs why the source does not work, once until it works again; and once
// more where a person has to change something.
func (s *supervised) noteTrouble(err error, wait time.Duration) {
	u, ok := unavailable(err)
	if s.silent && (!ok || s.needsPerson) {
		return
	}
	s.silent, s.needsPerson = true, ok
	if ok {
		s.w.o.Logger.Info("change feed not available; new jobs are looked for instead", "event", "feed.unavailable",
			"feed", s.Name(), "error", u.What, "remedy", u.Fix)
		return
	}
	s.w.o.Logger.Warn("change feed lost; new jobs are looked for until it is back", "event", "feed.lost",
		"feed", s.Name(), "retry_in", wait, "error", err)
}

// report takes what the source says.
func (s *supervised) report(r Report, rows ...Row) {
	now := s.w.o.Now()
	first := s.heard.Swap(now.UnixNano()) == 0
	if first {
		s.w.o.Logger.Info("change feed works", "event", "feed.works", "feed", s.Name())
		s.silent = false
		s.missed.Store(false)
		s.hint(Inserted, "") // what came before it began
	}
	if r == Written || r == Inserted {
		job := ""
		if len(rows) > 0 {
			job = rows[0].Job
		}
		s.hint(r, job)
	}
	if r == Inserted {
		rows = nil // they are none of the content
	}
	for _, row := range rows {
		if len(s.rows) < mostRows && !slices.Contains(s.rows, row) {
			s.rows = append(s.rows, row)
		}
	}
	if r == Edited || s.seesContent() {
		s.tellContent(now, first || r == Edited || r == Written)
	}
}

// tellContent passes on that content may have changed, or that the source works, not
// oftener than somebody can use it. A change that comes too soon after another is passed
// on with the next report.
func (s *supervised) tellContent(now time.Time, changed bool) {
	changed = changed || s.untold
	switch {
	case changed && now.Sub(s.toldChange) < contentGap:
		s.untold = true
	case changed:
		s.toldChange, s.untold = now, false
		s.w.o.Content(true, s.rows)
		s.rows = nil
	case now.Sub(s.toldAlive) >= aliveEvery-time.Second:
		s.toldAlive = now
		s.w.o.Content(false, nil)
	}
}

// seesContent says that the source tells of each change of content.
func (s *supervised) seesContent() bool {
	c, may := s.Source.(ContentSource)
	return may && !s.partial && c.SeesContent()
}

// hint makes the watcher look. Of two sources that see every insert, the first one's
// hints do: what the second says of the same rows would find nothing.
func (s *supervised) hint(r Report, job string) {
	if !s.partial {
		now := s.w.o.Now()
		for _, before := range s.w.sources[:max(0, slices.Index(s.w.sources, s))] {
			if before.trusted(now) {
				return
			}
		}
	}
	select {
	case s.w.hints <- hint{r, s, job}:
	default: // as many wait as one look answers
	}
}

// trusted says that the source lives and has told all that was found.
func (s *supervised) trusted(now time.Time) bool {
	heard := s.heard.Load()
	return !s.partial && heard > 0 && now.Sub(time.Unix(0, heard)) < aliveFor && !s.missed.Load()
}
