package main

import (
	"cmp"
	"context"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Enqueue puts jobs on their kinds' queues; the configuration may move a kind.
// It makes rooms a jobs.Enqueuer that handlers may hold before the store is
// open.
func (r *services) Enqueue(ctx context.Context, list ...jobs.Spec) ([]jobs.Receipt, error) {
	receipts, err := r.enqueueAll(ctx, list)
	if err == nil && r.activity != nil {
		r.activity.enqueued(ctx, list, receipts)
	}
	return receipts, err
}

// httpEnqueuer is Enqueue for people and programs over HTTP, whose deed is in the
// trail.
type httpEnqueuer struct{ r *services }

// Enqueue implements jobs.Enqueuer.
func (a httpEnqueuer) Enqueue(ctx context.Context, list ...jobs.Spec) ([]jobs.Receipt, error) {
	return a.r.enqueueAll(ctx, list)
}

func (r *services) enqueueAll(ctx context.Context, list []jobs.Spec) ([]jobs.Receipt, error) {
	placed, err := r.orders.Give(ctx, r.registry, list...) // a copy
	if err != nil {
		return nil, err
	}
	for i, n := range placed {
		if entry, known := r.registry.Lookup(n.Kind); known && n.Queue == "" {
			placed[i].Queue = cmp.Or(r.config.Kinds[entry.Kind].Queue, entry.Queue)
		}
		if r.metrics != nil {
			r.metrics.Enqueued(cmp.Or(placed[i].Queue, r.config.Queue.Default), n.Kind)
		}
	}
	return r.enqueueTraced(ctx, placed)
}

// enqueueOne is Enqueue of one job.
func (r *services) enqueueOne(ctx context.Context, n jobs.Spec) (jobs.Receipt, error) {
	receipts, err := r.Enqueue(ctx, n)
	if err != nil {
		return jobs.Receipt{}, err
	}
	return receipts[0], nil
}
