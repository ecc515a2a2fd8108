package app

import (
	"cmp"
	"context"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/php/batches"
	"github.com/cmsjobs/cmsjobs/internal/redact"
)

// Snapshot collects what an explanation depends on.
func (r *Services) Snapshot(ctx context.Context, record jobs.Record) (explain.Snapshot, error) {
	return ops.Explainer{Ledger: r.History, Registry: r.Registry, Now: r.Now, Workers: r.History.Workers,
		Breakers:     r.OpenBreakers,
		JobsDisabled: !r.Config.Queue.Enabled, PHPQueues: r.Config.PHP.Served()}.Snapshot(ctx, record)
}

// Batches reads Laravel's batches.
func (r *Services) Batches() *batches.Store {
	return &batches.Store{DB: r.DB, Table: r.Config.Database.Prefix + "job_batches"}
}

// Actions change jobs by the rules that the API has, too.
func (r *Services) Actions() ops.Actions {
	return ops.Actions{Change: r.History, Enqueue: httpEnqueuer{r}, Registry: r.Registry}
}

// Viewer shows what an operator sees over HTTP, or everything unmasked.
func (r *Services) Viewer(unmasked bool) (ops.Viewer, error) {
	v := ops.Viewer{To: redact.Operators, Registry: r.Registry}
	if unmasked {
		return v, nil
	}
	var err error
	v.Mask, err = redact.NewRules(r.Config.HTTP.Mask, r.Registry)
	return v, err
}

// QueueNames lists the queues that a job, worker, type or setting has, sorted.
func (r *Services) QueueNames(ctx context.Context) ([]string, error) {
	stats, err := r.History.Stats(ctx)
	if err != nil {
		return nil, err
	}
	known := append([]string{r.Config.Queue.Default}, r.Config.Queue.Queues...)
	for _, q := range stats.Queues {
		known = append(known, q.Queue)
	}
	for _, name := range r.Registry.KnownTypes() {
		if entry, there := r.Registry.Known(name); there && entry.Queue != "" {
			known = append(known, entry.Queue)
		}
	}
	slices.Sort(known)
	return slices.Compact(known), nil
}

// Control pauses queues, stops workers and changes the schedule.
func (r *Services) Control() (ops.Control, error) {
	s, err := r.Scheduler()
	return ops.Control{Queues: r.History, Workers: r.History, Schedules: s, Known: r.QueueNames}, err
}

// Enqueue puts jobs on their types' queues; the configuration may move a type.
// It is a jobs.Enqueuer that handlers may hold before the store is
// open.
func (r *Services) Enqueue(ctx context.Context, list ...jobs.Spec) ([]jobs.Receipt, error) {
	receipts, err := r.enqueueAll(ctx, list)
	if err == nil && r.Activity != nil {
		r.Activity.Enqueued(ctx, list, receipts)
	}
	return receipts, err
}

// httpEnqueuer is Enqueue for people and programs over HTTP, whose audit entry is in the
// audit log.
type httpEnqueuer struct{ r *Services }

// Enqueue implements jobs.Enqueuer.
func (a httpEnqueuer) Enqueue(ctx context.Context, list ...jobs.Spec) ([]jobs.Receipt, error) {
	return a.r.enqueueAll(ctx, list)
}

func (r *Services) enqueueAll(ctx context.Context, list []jobs.Spec) ([]jobs.Receipt, error) {
	placed, err := r.Orders.Give(ctx, r.Registry, list...) // a copy
	if err != nil {
		return nil, err
	}
	for i, n := range placed {
		if entry, known := r.Registry.Known(n.Type); known && n.Queue == "" {
			placed[i].Queue = cmp.Or(r.Config.Types[entry.Type].Queue, entry.Queue)
		}
		if r.Metrics != nil {
			r.Metrics.Enqueued(cmp.Or(placed[i].Queue, r.Config.Queue.Default), n.Type)
		}
	}
	return r.enqueueTraced(ctx, placed)
}

// EnqueueOne is Enqueue of one job.
func (r *Services) EnqueueOne(ctx context.Context, n jobs.Spec) (jobs.Receipt, error) {
	receipts, err := r.Enqueue(ctx, n)
	if err != nil {
		return jobs.Receipt{}, err
	}
	return receipts[0], nil
}
