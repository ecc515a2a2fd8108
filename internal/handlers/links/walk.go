package links

import (
	"context"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// What a result holds, and what a walk reads and remembers at most.
const (
	maxBroken, maxOn = 100, 5
	maxError         = 200
	maxPage          = 4 << 20
	// maxKnown bounds the addresses of a walk: those that are asked for and those that are left.
	maxKnown = 4 * mostAddresses
)

// place is an address, who links to it, and what became of it.
type place struct {
	url    *url.URL
	file   bool
	on     []string
	links  int
	status int
	err    error
	asked  bool
}

// broken says that the address leads nowhere. A page that asks who comes (401, 403, 451) is there.
func (p *place) broken() bool {
	switch {
	case !p.asked:
		return false
	case p.err != nil:
		return true
	case p.status == http.StatusUnauthorized, p.status == http.StatusForbidden,
		p.status == http.StatusUnavailableForLegalReasons:
		return false
	}
	return p.status >= http.StatusBadRequest
}

// walk is one check. It asks for addresses in the order in which they were found.
type walk struct {
	h     *Handler
	most  int
	until time.Time

	mu    sync.Mutex
	known map[string]*place
	queue []*place
	next  int
}

func newWalk(h *Handler, most int) *walk {
	if most <= 0 {
		most = defaultMost
	}
	return &walk{h: h, most: most, until: h.c.Now().Add(h.c.Budget), known: map[string]*place{}}
}

// add notes a link on a page; on is nil where no page names it.
func (w *walk) add(on *url.URL, l link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := l.to.String()
	p := w.known[key]
	if p == nil {
		if len(w.known) >= maxKnown {
			return
		}
		p = &place{url: l.to, file: l.file}
		w.known[key], w.queue = p, append(w.queue, p)
	}
	if on == nil {
		return
	}
	if page := on.String(); !slices.Contains(p.on, page) {
		if p.links++; len(p.on) < maxOn {
			p.on = append(p.on, page)
		}
	}
}

// full says that no more addresses will be asked for than are known.
func (w *walk) full() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue) >= w.most
}

// run asks until every address is known, or a bound is reached: in rounds, as what a round
// finds is the next one.
func (w *walk) run(ctx context.Context) {
	for {
		round, known := w.round()
		jobs.Report(ctx, int64(known-len(round)), int64(known), "")
		if len(round) == 0 || ctx.Err() != nil {
			return
		}
		var group sync.WaitGroup
		slots := make(chan struct{}, w.h.c.AtOnce)
		for _, p := range round {
			if ctx.Err() != nil || !w.h.c.Now().Before(w.until) {
				break
			}
			slots <- struct{}{}
			group.Go(func() {
				defer func() { <-slots }()
				w.ask(ctx, p)
			})
		}
		group.Wait()
	}
}

// round takes the addresses that no round has had, and says how many are known to be asked for.
func (w *walk) round() (round []*place, known int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known = min(len(w.queue), w.most)
	if !w.h.c.Now().Before(w.until) {
		return nil, known
	}
	round = w.queue[w.next:known]
	w.next = known
	return round, known
}

// ask asks for one address, and reads its links where it is a page.
func (w *walk) ask(ctx context.Context, p *place) {
	method := http.MethodGet
	if p.file {
		method = http.MethodHead
	}
	status, at, list, err := w.fetch(ctx, method, p.url)
	if p.file && (status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented) {
		status, at, list, err = w.fetch(ctx, http.MethodGet, p.url)
	}
	if ctx.Err() != nil || status == http.StatusTooManyRequests {
		return // it was not the site; or the site asks not to be asked, which says nothing of the page
	}
	p.status, p.err, p.asked = status, err, true
	for _, l := range list {
		if w.h.own(l.to) {
			w.add(at, l)
		}
	}
}

// fetch is one exchange; at is where redirects within the site led. One that leaves the site is an
// answer as good as a page.
func (w *walk) fetch(ctx context.Context, method string, u *url.URL) (status int, at *url.URL, list []link,
	err error) {
	q, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return 0, u, nil, err
	}
	q.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	answer, err := w.h.c.Client.Do(q)
	if err != nil {
		return 0, u, nil, outbound.WithoutAddress(err)
	}
	defer answer.Body.Close()
	at = answer.Request.URL
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if method == http.MethodGet && answer.StatusCode/100 == 2 && w.h.own(at) &&
		(kind == "text/html" || kind == "application/xhtml+xml") {
		list = extract(io.LimitReader(answer.Body, maxPage), at)
	}
	return answer.StatusCode, at, list, nil
}

// nothing says that none of the addresses had an answer.
func (w *walk) nothing() bool {
	asked := 0
	for _, p := range w.queue {
		if p.asked && p.err == nil {
			return false
		}
		if p.asked {
			asked++
		}
	}
	return asked > 0
}

// result sums up what was found.
func (w *walk) result() (r Result) {
	for _, p := range w.queue {
		switch {
		case !p.asked:
			r.Left++
		case p.file:
			r.Files++
		default:
			r.Pages++
		}
		if !p.broken() {
			continue
		}
		if r.Found++; len(r.Broken) < maxBroken {
			b := Broken{URL: p.url.String(), Status: p.status, On: p.on, Links: p.links}
			if p.err != nil {
				b.Error = jobs.PlainText(p.err.Error(), maxError)
			}
			r.Broken = append(r.Broken, b)
		}
	}
	return r
}
