package app

import (
	"cmp"
	"context"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

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
		if entry, known := r.Registry.Lookup(n.Type); known && n.Queue == "" {
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
