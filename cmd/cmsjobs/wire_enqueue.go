package main

import (
	"cmp"
	"context"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Enqueue puts jobs on their kinds' queues; the configuration may move a kind.
// It makes rooms a jobs.Enqueuer that handlers may hold before the store is
// open.
func (r *rooms) Enqueue(ctx context.Context, list ...jobs.New) ([]jobs.Receipt, error) {
	receipts, err := r.put(ctx, list)
	if err == nil && r.activity != nil {
		r.activity.enqueued(ctx, list, receipts)
	}
	return receipts, err
}

// asked is Enqueue for people and programs over HTTP, whose deed is in the
// trail.
type asked struct{ r *rooms }

// Enqueue implements jobs.Enqueuer.
func (a asked) Enqueue(ctx context.Context, list ...jobs.New) ([]jobs.Receipt, error) {
	return a.r.put(ctx, list)
}

func (r *rooms) put(ctx context.Context, list []jobs.New) ([]jobs.Receipt, error) {
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

// enqueue is Enqueue of one job.
func (r *rooms) enqueue(ctx context.Context, n jobs.New) (jobs.Receipt, error) {
	receipts, err := r.Enqueue(ctx, n)
	if err != nil {
		return jobs.Receipt{}, err
	}
	return receipts[0], nil
}
