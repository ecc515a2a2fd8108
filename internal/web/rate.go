package web

import (
	"math"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// rates bounds how often one caller may ask this process. A burst of
// burstTime's requests is free.
type rates struct {
	perSecond int // 0 bounds nobody
	now       func() time.Time

	mu      sync.Mutex
	callers map[string]*rate.Limiter
}

const (
	burstTime  = 10 // seconds
	maxCallers = 10_000
)

func newRates(perSecond int, now func() time.Time) *rates {
	return &rates{perSecond: perSecond, now: now, callers: map[string]*rate.Limiter{}}
}

// refuse counts a request; a caller that asks too often gets a 429 that says
// when it may ask again.
func (r *rates) refuse(caller string) error {
	if r.perSecond <= 0 {
		return nil
	}
	now := r.now()
	reservation := r.of(caller, now).ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	reservation.CancelAt(now) // being refused costs nothing
	return r.tooMany(wait)
}

// spent refuses a caller that has used up its requests, and counts nothing.
func (r *rates) spent(caller string) error {
	if r.perSecond <= 0 {
		return nil
	}
	now := r.now()
	tokens := r.of(caller, now).TokensAt(now)
	if tokens >= 1 {
		return nil
	}
	return r.tooMany(time.Duration((1 - tokens) / float64(r.perSecond) * float64(time.Second)))
}

func (r *rates) tooMany(wait time.Duration) error {
	p := httpError(http.StatusTooManyRequests, "More than %d requests a second. Wait, or enqueue many jobs in one "+
		"request (POST /api/v1/jobs/batch).", r.perSecond)
	p.retryAfter = int(math.Ceil(wait.Seconds()))
	return p
}

func (r *rates) of(caller string, now time.Time) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, known := r.callers[caller]
	if !known {
		r.forget(now)
		l = rate.NewLimiter(rate.Limit(r.perSecond), r.perSecond*burstTime)
		r.callers[caller] = l
	}
	return l
}

// forget makes space: a caller who has not asked for a while is as new.
func (r *rates) forget(now time.Time) {
	if len(r.callers) < maxCallers {
		return
	}
	for caller, l := range r.callers {
		if l.TokensAt(now) >= float64(l.Burst()) {
			delete(r.callers, caller)
		}
	}
	if len(r.callers) >= maxCallers {
		clear(r.callers)
	}
}
