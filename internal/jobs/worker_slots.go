package jobs

import "time"

// MaxSlots is how many jobs one worker can run at once.
const MaxSlots = 10000

// slots is how many jobs the worker runs at once now.
func (w *Worker) slots() int { return w.inFlight.slotCount() }

// mostSlots is how many slots the worker takes, whatever people order.
func (w *Worker) mostSlots() int { return max(w.c.MaxSlots, w.c.Slots) }

// scale gives the worker as many slots as people ordered, at most those that it can
// take; 0 is as many as it was configured with. New slots begin at once. Where there
// are fewer, running jobs end as usual and their slots go with them, and what waits
// here unstarted is released for other workers. It says whether anything changed.
func (w *Worker) scale(ordered int) bool {
	before, n := w.slots(), w.c.Slots
	if ordered > 0 {
		n = min(ordered, w.mostSlots())
	}
	if n == before || !w.inFlight.setSlots(n, w.startSlot) {
		return false
	}
	if n < before {
		w.releaseUnstarted(w.c.Now().Add(time.Hour), fewerSlots)
	}
	notify(w.slotFreed)
	w.c.Logger.Info("number of slots changed", "event", "worker.scaled", "worker", w.c.Info.ID, "slots", n,
		"before", before)
	return true
}

// fewerSlots is why a claimed job is released unstarted.
const fewerSlots = "the worker has fewer slots"

// arrived adds claimed jobs to the line. asked is how many slots there were when
// they were asked for: where people took some away since, the jobs are released.
func (w *Worker) arrived(claimed []Claimed, at time.Time, asked int) {
	w.started.Add(int64(len(claimed)))
	w.inFlight.take(claimed, at)
	if len(claimed) > 0 && w.slots() < asked {
		w.releaseUnstarted(w.c.Now().Add(time.Hour), fewerSlots)
	}
}
