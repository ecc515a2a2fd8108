package queues

import (
	"fmt"
	"net/url"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

type queuesPageData struct {
	Queues  []ops.QueueView
	More    int  // queues that are not listed
	Control bool // they can be paused here
}

func (h handlers) queuesPage(req *web.Request) error {
	st, err := req.Stats()
	if err != nil {
		return fmt.Errorf("counting jobs: %w", err)
	}
	return req.Show(web.PageView{Name: "queues", Live: web.LiveList, Data: queuesPageData{
		ops.Each(st.Queues, ops.Queue), st.MoreQueues, h.Control.Queues != nil}, Ready: true})
}

// queueNamed finds a queue's figures; an empty queue has none and is no error.
func (h handlers) queueNamed(req *web.Request, name string) (jobs.QueueStats, error) {
	st, err := req.Stats()
	if err != nil {
		return jobs.QueueStats{}, fmt.Errorf("counting jobs: %w", err)
	}
	for _, q := range st.Queues {
		if q.Queue == name {
			return q, nil
		}
	}
	return jobs.QueueStats{Queue: name}, nil
}

func (h handlers) pauseByForm(req *web.Request) error {
	name, err := req.NameParam("name")
	if err != nil {
		return err
	}
	q, err := h.queueNamed(req, name)
	if err != nil {
		return err
	}
	undoable := req.MayWork() == nil
	if !undoable { // who may not continue the queue is asked
		if yes, err := req.Sure(req.Printer().Text("queues.pause.ask", name, q.Waiting(), q.Processing), ""); !yes ||
			err != nil {
			return err
		}
	}
	if err := h.Pause(req.Ctx(), []string{name}, req.Caller().Name, false); err != nil {
		return err
	}
	if !undoable {
		return req.Back("/admin/queues", "queues.pause.done", name)
	}
	return req.BackUndoable("/admin/queues", web.Undo{Path: "/admin/queues/" + url.PathEscape(name) + "/continue"},
		"queues.pause.undoable", name, q.Waiting(), q.Processing)
}

func (h handlers) continueByForm(req *web.Request) error {
	name, err := req.NameParam("name")
	if err != nil {
		return err
	}
	if err := req.MayWork(); err != nil {
		return err
	}
	if _, err := h.Continue(req.Ctx(), name); err != nil {
		return err
	}
	return req.BackUndoable("/admin/queues", web.Undo{Path: "/admin/queues/" + url.PathEscape(name) + "/pause"},
		"queues.continue.done", name)
}

type workersPageData struct {
	Configured bool
	Workers    []workerCard
	Live       int
	Scalable   bool // a live worker has slots
	Slots      stepper
	Single     bool // slots were ordered for a single worker
}

// workerCard is a worker with the number of its slots, to be changed.
type workerCard struct {
	ops.WorkerView
	Wanted stepper
}

// stepper is a number of slots, to be changed by one, or to be taken back.
type stepper struct{ N, Most, Ordered int }

// Fewer is one less; 0 is that there is none.
func (s stepper) Fewer() int { return s.N - 1 }

// More is one more; 0 is that there is none.
func (s stepper) More() int {
	if s.N >= s.Most {
		return 0
	}
	return s.N + 1
}

func (h handlers) workers(req *web.Request) (workersPageData, error) {
	v := workersPageData{Configured: h.Workers != nil}
	if !v.Configured {
		return v, nil
	}
	list, err := h.Workers.Workers(req.Ctx())
	if err != nil {
		return v, fmt.Errorf("listing workers: %w", err)
	}
	all, err := h.Workers.OrderedSlots(req.Ctx())
	if err != nil {
		return v, fmt.Errorf("reading the slots of workers: %w", err)
	}
	v.Slots = stepper{N: all, Ordered: all}
	for _, w := range list {
		wanted := w.WantedSlots(all, w.OrderedSlots)
		v.Workers = append(v.Workers, workerCard{req.View().Worker(w), stepper{wanted, w.MaxSlots, w.OrderedSlots}})
		if !w.Alive {
			continue
		}
		v.Live++
		v.Slots.Most = max(v.Slots.Most, w.MaxSlots)
		v.Scalable, v.Single = v.Scalable || w.RunsTypes(), v.Single || w.OrderedSlots > 0
		if all == 0 {
			v.Slots.N = max(v.Slots.N, wanted)
		}
	}
	return v, nil
}

func (h handlers) workersPage(req *web.Request) error {
	v, err := h.workers(req)
	if err != nil {
		return err
	}
	return req.Show(web.PageView{Name: "workers", Live: web.LiveList, Data: v, Ready: true})
}

func (h handlers) stopByForm(req *web.Request) error {
	v, err := h.workers(req)
	if err != nil {
		return err
	}
	id, err := req.NameParam("id")
	if err != nil {
		return err
	}
	for _, w := range v.Workers {
		if w.ID != id {
			continue
		}
		if yes, err := req.Sure(req.Printer().Text("workers.stop.ask", id, w.Jobs(), max(v.Live-1, 0)),
			""); !yes || err != nil {
			return err
		}
		if err := h.StopWorker(req.Ctx(), id); err != nil {
			return err
		}
		return req.Back("/admin/workers", "workers.stop.done")
	}
	return fmt.Errorf("the worker %s: %w", id, jobs.ErrNotFound)
}

func (h handlers) restartByForm(req *web.Request) error {
	v, err := h.workers(req)
	if err != nil {
		return err
	}
	running := 0
	for _, w := range v.Workers {
		running += w.Jobs()
	}
	if yes, err := req.Sure(req.Printer().Text("workers.restart.ask", v.Live, running), ""); !yes || err != nil {
		return err
	}
	if _, err := h.RestartWorkers(req.Ctx()); err != nil {
		return err
	}
	return req.Back("/admin/workers", "workers.restart.done")
}
