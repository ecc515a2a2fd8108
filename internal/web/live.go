package web

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// sseHub tells listeners what changes. Workers live in other processes, so it
// looks into the store: once a second for all listeners, not at all without.
type sseHub struct {
	ledger  Ledger
	history History // nil: no events of runs
	view    ops.Viewer
	log     *slog.Logger

	mu        sync.Mutex
	listeners map[chan event]*listener
	woken     chan struct{}
	closed    bool
	lastRun   int64
	looked    bool // lastRun is known
}

// listener is who gets events.
type listener struct {
	owner string
	last  map[string]string // the state that it knows, by the event's key
}

// event is one server-sent event.
type event struct {
	Name string // stats, job, run, deadline of the schedule …
	Data []byte // JSON
}

const (
	liveEvery     = time.Second
	liveBuffer    = 64
	liveListeners = 200
	liveOwn       = 20 // of one token, account or address
	liveJobs      = 100
	liveKnown     = 10 * liveJobs // states that are remembered of one listener
	statsKey      = "stats"
)

func newLive(ledger Ledger, history History, view ops.Viewer, log *slog.Logger) *sseHub {
	return &sseHub{ledger: ledger, history: history, view: view, log: log,
		listeners: map[chan event]*listener{}, woken: make(chan struct{}, 1)}
}

// listen returns a channel of events and a func that ends it; false when there
// are too many listeners, in all or of this owner, or the server stops. A listener
// hears first where things stand, unless it knows that state of the figures.
func (l *sseHub) listen(owner, known string) (chan event, func(), bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := 0
	for _, other := range l.listeners {
		if other.owner == owner {
			own++
		}
	}
	if l.closed || len(l.listeners) >= liveListeners || own >= liveOwn {
		return nil, nil, false
	}
	ch := make(chan event, liveBuffer)
	l.listeners[ch] = &listener{owner: owner, last: map[string]string{statsKey: known}}
	select {
	case l.woken <- struct{}{}:
	default:
	}
	return ch, func() { l.drop(ch) }, true
}

func (l *sseHub) drop(ch chan event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, there := l.listeners[ch]; there {
		delete(l.listeners, ch)
		close(ch)
	}
}

func (l *sseHub) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for ch := range l.listeners {
		delete(l.listeners, ch)
		close(ch)
	}
}

func (l *sseHub) idle() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.listeners) == 0 }

// run looks until ctx ends.
func (l *sseHub) run(ctx context.Context) {
	for {
		if l.idle() {
			select {
			case <-ctx.Done():
				return
			case <-l.woken:
			}
		}
		look, cancel := context.WithTimeout(ctx, 10*liveEvery)
		if err := l.look(look); err != nil && ctx.Err() == nil {
			l.log.Warn("live changes not read", "event", "web.live_failed", "error", err)
		}
		cancel()
		wait := time.NewTimer(liveEvery)
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
	}
}

// look compares the store with what was sent last.
func (l *sseHub) look(ctx context.Context) error {
	stats, err := l.ledger.Stats(ctx)
	if err != nil {
		return err
	}
	l.tell("stats", statsKey, stateOf(ops.Stats(ageless(stats))), ops.Stats(stats))
	running, err := l.ledger.Jobs(ctx, jobs.Filter{Statuses: []jobs.Status{jobs.StatusProcessing}},
		jobs.Page{Limit: liveJobs, Uncounted: true})
	if err != nil {
		return err
	}
	for _, r := range running.Items {
		job := l.view.Job(r)
		l.tell("job", "job "+ops.IDOf(r), stateOf(job), job)
	}
	if l.history == nil {
		return nil
	}
	ended, err := l.history.Runs(ctx, jobs.Filter{}, jobs.Page{Limit: liveJobs})
	if err != nil {
		return err
	}
	for i := len(ended.Items) - 1; i >= 0; i-- { // oldest first
		r := ended.Items[i]
		if r.ID <= l.lastRun {
			continue
		}
		l.lastRun = r.ID
		if l.looked {
			l.tell("run", "", "", l.view.Run(r))
			l.forget("job " + r.UUID)
		}
	}
	l.looked = true
	return nil
}

// ageless are figures without how long jobs have waited: a wait grows each second, and
// each event makes every open page load its figures again.
func ageless(s jobs.Stats) jobs.Stats {
	s.Oldest = 0
	s.Queues = slices.Clone(s.Queues)
	for i := range s.Queues {
		s.Queues[i].Oldest = 0
	}
	return s
}

// stateOf is a short word that is another one for another value.
func stateOf(value any) string {
	h := fnv.New64a()
	if err := json.NewEncoder(h).Encode(value); err != nil {
		return ""
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

func (l *sseHub) forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, who := range l.listeners {
		delete(who.last, key)
	}
}

// tell sends an event to all listeners but those who know the state of the key.
// Who does not keep up is cut off; its browser connects again.
func (l *sseHub) tell(name, key, state string, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for ch, who := range l.listeners {
		if key != "" {
			if who.last[key] == state {
				continue
			}
			if len(who.last) >= liveKnown {
				clear(who.last)
			}
			who.last[key] = state
		}
		select {
		case ch <- event{name, data}:
		default:
			delete(l.listeners, ch)
			close(ch)
		}
	}
}

const liveBeat = 15 * time.Second

func (s *Server) events(c echo.Context) error {
	known := c.QueryParam("known")
	if len(known) > len(stateOf(nil)) {
		known = ""
	}
	ch, end, ok := s.live.listen(caller(who(c), access.Network(c.RealIP())), known)
	if !ok {
		p := httpError(http.StatusServiceUnavailable, "Too many listen to live changes. Try again later.")
		p.retryAfter = 30
		return p
	}
	defer end()
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would keep events back
	control := http.NewResponseController(c.Response())
	c.Response().WriteHeader(http.StatusOK)
	if _, err := fmt.Fprint(c.Response(), "retry: 3000\n\n"); err != nil {
		return nil
	}
	return s.stream(c, ch, control)
}

// stream writes events until the listener leaves. An end of the connection is
// no fault.
func (s *Server) stream(c echo.Context, ch <-chan event, control *http.ResponseController) error {
	beat := time.NewTicker(liveBeat)
	defer beat.Stop()
	for {
		if err := control.Flush(); err != nil {
			return nil
		}
		var err error
		select {
		case <-c.Request().Context().Done():
			return nil
		case e, open := <-ch:
			if !open {
				return nil
			}
			_, err = fmt.Fprintf(c.Response(), "event: %s\ndata: %s\n\n", e.Name, e.Data)
		case <-beat.C:
			// Rights may have been taken away since.
			p, again := s.identify(c)
			if again != nil || !s.may(p, Route{Scope: "read"}) {
				return nil
			}
			// A named event, not a comment: the page measures silence by it.
			_, err = fmt.Fprint(c.Response(), "event: beat\ndata: {}\n\n")
		}
		if err != nil {
			return nil
		}
	}
}
