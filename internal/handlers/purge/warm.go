package purge

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// WarmOptions say how pages are asked for. Zero values mean the defaults, but
// for Most, with which 0 asks for none.
type WarmOptions struct {
	// Most is how many pages one job asks for.
	Most int
	// AtOnce is how many at the same time: 4.
	AtOnce int
	// Budget is how long one job asks at most: 2 minutes.
	Budget time.Duration
	// UserAgent of the requests.
	UserAgent string
}

func (o WarmOptions) withDefaults() WarmOptions {
	if o.AtOnce <= 0 {
		o.AtOnce = 4
	}
	if o.Budget <= 0 {
		o.Budget = 2 * time.Minute
	}
	return o
}

const maxExamples = 5

// warming gathers what was found, for several goroutines.
type warming struct {
	mu    sync.Mutex
	warm  Warm
	times []time.Duration
}

// warm asks for pages as a reader's browser would. A page that fails fails no
// job: its cache is only filled later.
func (h *Handler) warm(ctx context.Context, urls []*url.URL) Warm {
	ctx, cancel := context.WithTimeout(ctx, h.c.Warm.Budget)
	defer cancel()
	var w warming
	w.warm.Left = max(0, len(urls)-h.c.Warm.Most)
	var group errgroup.Group
	group.SetLimit(h.c.Warm.AtOnce)
	for _, u := range urls[:min(len(urls), h.c.Warm.Most)] {
		group.Go(func() error {
			if ctx.Err() != nil {
				w.note(func() { w.warm.Left++ })
				return nil
			}
			h.ask(ctx, u, &w)
			return nil
		})
	}
	_ = group.Wait() // no goroutine returns an error
	if n := len(w.times); n > 0 {
		slices.Sort(w.times)
		w.warm.P50, w.warm.Max = w.times[n/2].Milliseconds(), w.times[n-1].Milliseconds()
	}
	return w.warm
}

func (w *warming) note(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (h *Handler) ask(ctx context.Context, u *url.URL, w *warming) {
	began := h.c.Now()
	status, err := h.fetch(ctx, u)
	took := h.c.Now().Sub(began)
	w.note(func() {
		w.warm.Asked++
		switch {
		case err == nil && status/100 == 2:
			w.warm.Found++
			w.times = append(w.times, took)
		case status == http.StatusNotFound || status == http.StatusGone:
			w.warm.Gone++
		default:
			w.warm.Failed++
			if len(w.warm.Examples) < maxExamples {
				w.warm.Examples = append(w.warm.Examples, failure(u, status, err))
			}
		}
	})
}

func failure(u *url.URL, status int, err error) string {
	if err != nil {
		return fmt.Sprintf("%s: %s", u, jobs.PlainText(err.Error(), maxSaid))
	}
	return fmt.Sprintf("%s: %d", u, status)
}

// fetch reads a whole page, as caches keep only what was read to its end.
func (h *Handler) fetch(ctx context.Context, u *url.URL) (status int, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, err
	}
	// A cache keeps one copy for each encoding: the one that browsers ask for.
	q.Header.Set("Accept-Encoding", "gzip, deflate, br")
	q.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	if h.c.Warm.UserAgent != "" {
		q.Header.Set("User-Agent", h.c.Warm.UserAgent)
	}
	answer, err := h.c.Client.Do(q)
	if err != nil {
		return 0, outbound.WithoutAddress(err)
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}
