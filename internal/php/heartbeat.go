package php

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Heartbeat says what the pools do, in a program whose worker does not say it: there is
// none.
type Heartbeat struct {
	Registry jobs.WorkerRegistry
	Info     jobs.WorkerInfo // ID, Host, PID and Version; the rest is filled in
	Pools    Pools
	// Busy and Idle are the times between heartbeats while jobs run, and while none does:
	// 2 s and 6 s, by default.
	Busy, Idle time.Duration
	Now        func() time.Time
	Logger     *slog.Logger
}

// Run goes on until ctx ends, or people ask the program to stop or to restart.
func (h *Heartbeat) Run(ctx context.Context) error {
	h.Info.StartedAt, h.Info.Status = h.Now(), "running"
	defer h.leave(ctx)
	for {
		busy, stop := h.beat(ctx)
		if stop != "" {
			h.Logger.Info("stopping", "event", "worker.stopping", "reason", stop)
			return nil
		}
		pause := cmp.Or(h.Idle, 6*time.Second)
		if busy {
			pause = cmp.Or(h.Busy, 2*time.Second)
		}
		if !wait(ctx, pause) {
			return nil
		}
	}
}

// beat is one heartbeat; stop is why the program is to end, "" where it is not.
func (h *Heartbeat) beat(ctx context.Context) (busy bool, stop string) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	info := h.Info
	info.PHP = h.Pools.Processes()
	orders, err := h.Registry.Heartbeat(call, info)
	switch {
	case err != nil:
		h.Pools.Return(info.PHP)
		if ctx.Err() == nil {
			h.Logger.Warn("heartbeat not written; pages do not show what the PHP processes do", "event",
				"php.heartbeat_failed", "error", err)
		}
	case orders.Stop:
		stop = "it was asked to stop"
	case orders.RestartedAt.After(h.Info.StartedAt):
		stop = "all workers were asked to restart"
	}
	return jobs.BusyPHP(info.PHP), stop
}

// leaveWithin bounds the last write: a service manager waits for the end.
const leaveWithin = 5 * time.Second

// leave takes the program off the list.
func (h *Heartbeat) leave(ctx context.Context) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	if err := h.Registry.Deregister(call, h.Info.ID); err != nil {
		h.Logger.Warn("worker not deregistered; its row will be removed as stale", "event",
			"worker.deregister_failed", "error", err)
	}
}
