package jobs

import (
	"context"
	"time"
)

// renewAll extends the leases of all claimed jobs every third of their length.
// A run whose lease cannot be renewed is cancelled by its own timer: see
// whileLeased.
func (w *Worker) renewAll(ctx context.Context) {
	every := w.c.Lease / 3
	for sleep(ctx, every/2) {
		w.renewDue(ctx, every/2)
		w.releaseStale()
	}
}

// renewDue renews the leases that have a third of their length behind them.
func (w *Worker) renewDue(ctx context.Context, older time.Duration) {
	w.leases.Lock()
	defer w.leases.Unlock()
	now := w.c.Now()
	var due []*inFlightJob
	var leases []Lease
	w.inFlight.mu.Lock()
	for _, x := range w.inFlight.rows {
		if now.Sub(*x.renewed.Load()) >= older && !x.lost {
			due = append(due, x)
			leases = append(append(leases, x.lease), x.duplicates...)
		}
	}
	w.inFlight.mu.Unlock()
	if len(due) == 0 {
		if len(w.inFlight.list()) == 0 { // what could not be renewed is gone
			w.trouble.clear(doingRenewals)
		}
		return
	}
	call, cancel := context.WithTimeout(ctx, w.c.Lease/3)
	defer cancel()
	renewed, err := w.c.Source.Renew(call, leases, w.c.Lease)
	if err != nil {
		w.trouble.note(doingRenewals, err)
		return
	}
	w.trouble.clear(doingRenewals)
	w.apply(due, renewed, now)
}

// apply stores renewed leases; a zero lease is a lost one.
func (w *Worker) apply(due []*inFlightJob, renewed []Lease, now time.Time) {
	var lost []*inFlightJob
	w.inFlight.mu.Lock()
	for _, x := range due {
		mine := renewed[:1+len(x.duplicates)]
		renewed = renewed[len(mine):]
		if mine[0] == (Lease{}) {
			lost = append(lost, x)
			continue
		}
		x.lease = mine[0]
		x.renewed.Store(&now)
		x.duplicates = append([]Lease(nil), mine[1:]...)
	}
	w.inFlight.mu.Unlock()
	for _, x := range lost {
		w.c.Logger.Warn("lease lost: another worker took the job, or a person removed it", "event", "lease.lost",
			"type", x.claimed.Job.Type, "id", x.claimed.Job.ID, "uuid", x.claimed.Job.UUID)
		w.inFlight.lose(x)
	}
}

// staleAfter is how long a job may wait for a slot here before other workers
// get their chance.
const staleAfter = 5 * time.Second

// releaseStale releases what was claimed ahead and found no slot in time: the
// jobs before it turned out to be longer than those before them.
func (w *Worker) releaseStale() {
	w.releaseUnstarted(w.c.Now().Add(-staleAfter), "claimed ahead, no slot came free in time")
}
