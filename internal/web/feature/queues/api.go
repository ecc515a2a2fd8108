package queues

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

func (h handlers) listQueues(req *web.Request) error {
	st, err := req.Ledger().Stats(req.Ctx())
	if err != nil {
		return fmt.Errorf("counting jobs: %w", err)
	}
	return req.JSON(http.StatusOK, ops.ItemsOf(st.Queues, ops.Queue))
}

func (h handlers) pauseQueue(req *web.Request) error {
	name, err := req.NameParam("name")
	if err != nil {
		return err
	}
	if err := h.Queues.Pause(req.Ctx(), name, req.Caller().Name); err != nil {
		return fmt.Errorf("pausing the queue %s: %w", name, err)
	}
	return req.JSON(http.StatusOK, web.Affected{Changed: 1})
}

func (h handlers) continueQueue(req *web.Request) error {
	name, err := req.NameParam("name")
	if err != nil {
		return err
	}
	if err := req.MayWork(); err != nil {
		return err
	}
	was, err := h.Queues.Continue(req.Ctx(), name)
	if err != nil {
		return fmt.Errorf("continuing the queue %s: %w", name, err)
	}
	var changed int64
	if was {
		changed = 1
	}
	return req.JSON(http.StatusOK, web.Affected{Changed: changed})
}

func (h handlers) listWorkers(req *web.Request) error {
	list, err := h.Workers.Workers(req.Ctx())
	if err != nil {
		return fmt.Errorf("listing workers: %w", err)
	}
	return req.JSON(http.StatusOK, ops.ItemsOf(list, req.View().Worker))
}

func (h handlers) stopWorker(req *web.Request) error {
	id, err := req.NameParam("id")
	if err != nil {
		return err
	}
	known, err := h.Workers.Stop(req.Ctx(), id)
	if err != nil {
		return fmt.Errorf("stopping the worker %s: %w", id, err)
	}
	if !known {
		return fmt.Errorf("the worker %s: %w", id, jobs.ErrNotFound)
	}
	return req.JSON(http.StatusOK, web.Affected{Changed: 1})
}

func (h handlers) restartWorkers(req *web.Request) error {
	list, err := h.Workers.Workers(req.Ctx())
	if err == nil {
		err = h.Workers.Restart(req.Ctx())
	}
	if err != nil {
		return fmt.Errorf("restarting workers: %w", err)
	}
	list = slices.DeleteFunc(list, func(w jobs.WorkerRecord) bool { return !w.Alive })
	return req.JSON(http.StatusOK, web.Affected{Changed: int64(len(list))})
}
