package feed

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Rows is the jobs table.
type Rows interface {
	Arrivals(ctx context.Context, after int64, limit int) ([]tables.Arrival, error)
	LastNumber(ctx context.Context) (int64, error)
}

// Options say what a watcher watches and whom it wakes.
type Options struct {
	Rows Rows
	// Wake tells the workers of this host that a queue has jobs; "" is any queue. A row
	// that a source has may stand in the next line.
	Wake func(queue string)
	// Dir is where the processes of this host agree on who watches.
	Dir string
	// Busy is the time between looks while jobs come, Idle while none do; twice
	// Idle while Night says so. With a Busy of 0 there are only those that sources
	// cause, and one every few seconds.
	Busy, Idle time.Duration
	Night      func(time.Time) bool
	// Content is called while a source works that sees each change of the CMS's
	// content: with true when there may be one, and rows that changed where it knows,
	// else every few seconds. nil: nobody wants to know.
	Content func(changed bool, rows []Row)
	// Sources tell of every insert, the best first: while it works, the hints of the
	// next are not needed. Partial ones tell of some, and looks stay frequent beside
	// them. May be empty.
	Sources, Partial []Source
	Logger           *slog.Logger
	Now              func() time.Time
}

// A look reads at most lookMost rows; each call of the database may take
// lookTime.
const (
	lookMost = 100
	lookTime = 10 * time.Second
	// floorEvery is how often the newest row is read again while nothing comes:
	// TRUNCATE and a restart of old servers count from 1 again.
	floorEvery = 30 * time.Second
)

// Watcher looks for new rows and wakes workers.
type Watcher struct {
	o       Options
	hints   chan hint
	sources []*supervised
	looks   atomic.Int64

	// What follows belongs to Run's goroutine.
	pace      pace
	floor     int64     // rows up to here were seen
	floorAt   time.Time // when floor was read from the table; zero: it was not
	failed    int       // looks that failed in a row
	hint      hint      // what no look has answered yet
	tries     int       // looks since that hint
	looked    time.Time
	paid      time.Time // each look that a hint caused moves it a gap on; more than a burst ahead, they wait
	early     bool      // workers were woken ahead of the next look
	scheduled schedule
}

// hint is what a source said; Alive: nothing.
type hint struct {
	Report
	by  *supervised
	job string // a queue and the row of the job that came, "" where that is not known
}

// New makes a watcher.
func New(o Options) *Watcher {
	w := &Watcher{o: o, hints: make(chan hint, 64), pace: pace{busy: o.Busy, idle: max(o.Idle, o.Busy), night: o.Night}}
	if w.o.Content == nil {
		w.o.Content = func(bool, []Row) {}
	}
	for _, s := range o.Sources {
		w.sources = append(w.sources, &supervised{Source: s, w: w})
	}
	for _, s := range o.Partial {
		w.sources = append(w.sources, &supervised{Source: s, w: w, partial: true})
	}
	return w
}

// Looks is how many statements the watcher has asked of the database.
func (w *Watcher) Looks() int64 { return w.looks.Load() }

// Run waits until this process leads those of its host, then watches until ctx
// ends.
func (w *Watcher) Run(ctx context.Context) {
	release, err := lead(ctx, w.o.Dir)
	if ctx.Err() != nil {
		if err == nil {
			release()
		}
		return
	}
	if err != nil {
		w.o.Logger.Info("who looks for new jobs on this host cannot be agreed on; this process does",
			"event", "feed.no_lock", "error", err)
	} else {
		defer release()
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.runSources(ctx)
	}()
	w.watch(ctx)
	cancel()
	<-ended
}

// watch looks whenever it is time.
func (w *Watcher) watch(ctx context.Context) {
	w.pace.found(w.o.Now()) // a process that starts has often been started for a reason
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case h := <-w.hints:
			if wait, looks := w.heed(h); looks {
				timer.Reset(wait)
			}
		case <-timer.C:
			timer.Reset(w.turn(ctx))
		}
	}
}

// heed takes a hint and says how long to wait until the look that it causes; looks is
// false while another look is as near, or the database's trouble sets the pace.
func (w *Watcher) heed(h hint) (wait time.Duration, looks bool) {
	if h.Report >= w.hint.Report {
		w.hint = h
	}
	w.tries = 0
	if w.failed > 0 || w.early {
		return 0, false
	}
	wait = max(0, w.paid.Add(-burst*gap).Sub(w.o.Now()))
	// PHP tells after its commit, and who claims a row that the log has waits for it.
	if wait == 0 && h.Report == Inserted && (h.by.partial || h.job != "") {
		w.o.Wake(h.job)
		w.early, wait = true, behindClaim
	}
	return wait, true
}

// turn wakes for what became due, looks, and says how long to wait.
func (w *Watcher) turn(ctx context.Context) time.Duration {
	for _, queue := range w.scheduled.due(w.o.Now()) {
		w.o.Wake(queue)
	}
	found, err := w.look(ctx)
	w.looked = w.o.Now()
	if w.early { // a row that is not there has been claimed, and was quickly done; or another node is behind
		w.early, w.hint.Report, w.tries = false, Written, anyway
	}
	if w.hint.Report != Alive {
		if w.paid.Before(w.looked) {
			w.paid = w.looked
		}
		w.paid = w.paid.Add(gap)
	}
	if err != nil {
		return w.noteFailure(ctx, err)
	}
	w.failed = 0
	switch {
	case found:
		w.judge()
		w.pace.found(w.looked)
	case w.hint.Report != Alive && w.tries < len(again):
		w.tries++
		if w.tries > anyway && w.hint.Report == Inserted {
			w.o.Wake("")
			w.hint.Report = Written
		}
		return min(again[w.tries-1], w.wait(w.looked))
	}
	w.hint, w.tries = hint{}, 0
	return w.wait(w.looked)
}

// wait is how long to wait until the next look when nobody hints.
func (w *Watcher) wait(now time.Time) time.Duration {
	d := w.pace.next(now)
	if w.pace.busy <= 0 || w.trusted(now) {
		d = max(d, trustedPace)
	}
	if at, ok := w.scheduled.first(); ok {
		d = min(d, max(at.Sub(now), 0))
	}
	return d
}

// look reads the rows above the floor and wakes the workers of their queues.
func (w *Watcher) look(ctx context.Context) (found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	if w.floorAt.IsZero() {
		// What waits already was there before us, or came while we were away.
		defer func() {
			if err == nil {
				w.o.Wake("")
			}
		}()
		return false, w.readFloor(ctx)
	}
	w.looks.Add(1)
	rows, err := w.o.Rows.Arrivals(ctx, w.floor, lookMost)
	if err != nil {
		return false, err
	}
	if len(rows) == 0 {
		if w.o.Now().Sub(w.floorAt) >= floorEvery {
			return false, w.readFloor(ctx)
		}
		return false, nil
	}
	now := w.o.Now()
	w.floor, w.floorAt = rows[len(rows)-1].ID, now
	queues := map[string]bool{}
	for _, r := range rows {
		switch {
		case !r.Waiting:
		case r.Delay == 0:
			queues[r.Queue] = true
		default:
			w.scheduled.add(now, r.Delay, r.Queue)
		}
	}
	if len(rows) == lookMost { // more came than need be listed
		queues = map[string]bool{"": true}
		err = w.readFloor(ctx)
	}
	for queue := range queues {
		w.o.Wake(queue)
	}
	return true, err
}

// readFloor takes the newest row as seen.
func (w *Watcher) readFloor(ctx context.Context) error {
	w.looks.Add(1)
	last, err := w.o.Rows.LastNumber(ctx)
	if err != nil {
		return err
	}
	w.floor, w.floorAt = last, w.o.Now()
	return nil
}

// noteFailure says how long to wait after a look that failed. Workers log what is
// wrong with the database; the first look after it wakes them.
func (w *Watcher) noteFailure(ctx context.Context, err error) time.Duration {
	if w.failed++; w.failed == 1 && ctx.Err() == nil {
		w.o.Logger.Debug("looking for new jobs failed; it is tried again", "event", "feed.look_failed", "error", err)
	}
	w.floorAt, w.hint, w.tries = time.Time{}, hint{}, 0
	return min(troublePace, cmp.Or(w.pace.idle, time.Second)<<min(w.failed, 8))
}

// runSources runs all sources until ctx ends.
func (w *Watcher) runSources(ctx context.Context) {
	ended := make(chan struct{})
	for _, s := range w.sources {
		go func() {
			s.run(ctx)
			ended <- struct{}{}
		}()
	}
	for range w.sources {
		<-ended
	}
}

// trusted says that a source is known to work and has missed nothing.
func (w *Watcher) trusted(now time.Time) bool {
	for _, s := range w.sources {
		if s.trusted(now) {
			return true
		}
	}
	return false
}

// judge notes of a look that found something who had told. A source that let the
// pace find it is not trusted again before one of its hints finds something.
func (w *Watcher) judge() {
	if w.hint.by != nil {
		w.hint.by.missed.Store(false)
		return
	}
	for _, s := range w.sources {
		s.missed.Store(true)
	}
}

// errEnded is why a source that ends by itself is started again.
var errEnded = errors.New("it ended")
