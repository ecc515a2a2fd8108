package jobs

import (
	"context"
	"slices"
	"time"
)

// beatAll says that the worker lives and reads what people told it, every
// BeatIdle, or BeatBusy while jobs run. Run has made the first beat.
func (w *Worker) beatAll(ctx context.Context, startedAt time.Time) {
	if w.c.Workers == nil {
		return
	}
	refreshed, busyPHP := startedAt, false
	for {
		pause := w.c.BeatIdle
		if _, running := w.inFlight.counts(); running > 0 || busyPHP {
			pause = w.c.BeatBusy
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-w.c.Signalled:
		case <-timer.C:
		}
		timer.Stop()
		busyPHP = BusyPHP(w.beat(ctx, startedAt).PHP)
		w.watchMemory()
		if w.c.Now().Sub(refreshed) >= w.c.RefreshEvery {
			refreshed = w.c.Now()
			w.refresh(ctx)
		}
	}
}

// BusyPHP says whether a PHP process runs a job.
func BusyPHP(list []PHPProcess) bool {
	return slices.ContainsFunc(list, func(p PHPProcess) bool { return p.Job != nil })
}

// beat is one heartbeat, and another where what it read changed the worker; it
// returns what it said.
func (w *Worker) beat(ctx context.Context, startedAt time.Time) WorkerInfo {
	info, changed := w.beatOnce(ctx, startedAt)
	if changed {
		info, _ = w.beatOnce(ctx, startedAt)
	}
	return info
}

func (w *Worker) beatOnce(ctx context.Context, startedAt time.Time) (info WorkerInfo, changed bool) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	info = w.info(startedAt)
	orders, err := w.c.Workers.Heartbeat(call, info)
	if err != nil {
		w.returnLines(info)
		if ctx.Err() == nil {
			w.trouble.note(doingHeartbeat, err)
		}
		return info, false
	}
	w.trouble.clear(doingHeartbeat)
	w.applySignals(orders, startedAt)
	return info, w.scale(orders.Slots)
}

// info is what the worker says about itself now.
func (w *Worker) info(startedAt time.Time) WorkerInfo {
	info := w.c.Info
	info.Queues, info.Types, info.Slots = w.c.Queues, w.c.Registry.Types(), w.slots()
	info.ConfiguredSlots, info.MaxSlots = w.c.Slots, w.mostSlots()
	info.StartedAt, info.Status = startedAt, w.status.Load().(string)
	info.Done, info.Failed = w.done.Load(), w.failed.Load()
	if w.c.Memory != nil {
		info.MemoryBytes = w.c.Memory()
	}
	for _, x := range w.inFlight.list() {
		w.inFlight.mu.Lock()
		run, started, stage := x.run, x.started, x.stage
		w.inFlight.mu.Unlock()
		if stage != running || run == nil {
			continue
		}
		progress, lines := run.Snapshot()
		w.redact(progress, lines)
		j := x.claimed.Job
		info.Running = append(info.Running, RunningJob{ID: j.ID, UUID: j.UUID, Type: j.Type, Queue: j.Queue,
			Attempt: j.Attempt,
			Since:   started, Progress: progress, Lines: lines})
	}
	slices.SortFunc(info.Running, func(a, b RunningJob) int { return a.Since.Compare(b.Since) })
	if w.c.PHP != nil {
		info.PHP = w.c.PHP.Processes()
	}
	return info
}

// returnLines puts log lines back that could not be stored.
func (w *Worker) returnLines(info WorkerInfo) {
	if w.c.PHP != nil {
		w.c.PHP.Return(info.PHP)
	}
	for _, j := range info.Running {
		w.inFlight.mu.Lock()
		x := w.inFlight.rows[j.ID]
		w.inFlight.mu.Unlock()
		if x != nil && x.run != nil {
			x.run.unread(j.Lines)
		}
	}
}

// applySignals carries out orders.
func (w *Worker) applySignals(o ControlSignals, startedAt time.Time) {
	w.paused.Store(o.Paused)
	switch {
	case o.Stop:
		w.requestStop("it was asked to stop", nil)
	case o.RestartedAt.After(startedAt):
		w.requestStop("all workers were asked to restart", nil)
	}
	if len(o.Cancelled) == 0 {
		return
	}
	for _, x := range w.inFlight.list() {
		if slices.Contains(o.Cancelled, x.claimed.Job.UUID) {
			w.inFlight.cancelOne(x, ErrCancelled)
		}
	}
}

func (w *Worker) watchMemory() {
	if w.c.MemoryLimit <= 0 || w.c.Memory == nil {
		return
	}
	if used := w.c.Memory(); used > w.c.MemoryLimit {
		w.c.Logger.Warn("memory limit exceeded; the process stops after its running jobs",
			"event", "worker.memory_exceeded", "used", used, "limit", w.c.MemoryLimit)
		w.requestStop("it uses too much memory", ErrMemory)
	}
}

// refresh calls the refresh hooks.
func (w *Worker) refresh(ctx context.Context) {
	for _, hook := range w.c.Refresh {
		if err := hook(ctx); err != nil && ctx.Err() == nil {
			w.c.Logger.Warn("refresh hook failed; it is called again later", "event", "worker.refresh_failed",
				"error", err)
		}
	}
}
