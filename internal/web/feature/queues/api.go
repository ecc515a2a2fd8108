package queues

import (
	"fmt"
	"net/http"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

type handlers struct{ ops.Control }

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
	force := req.QueryParam("force")
	if err := h.Pause(req.Ctx(), []string{name}, req.Caller().Name, force == "1" || force == "true"); err != nil {
		return err
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
	was, err := h.Continue(req.Ctx(), name)
	if err != nil {
		return err
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
	if err := h.StopWorker(req.Ctx(), id); err != nil {
		return err
	}
	return req.JSON(http.StatusOK, web.Affected{Changed: 1})
}

// SlotsChange is how many slots workers are to have: a number, or reset.
type SlotsChange struct {
	Slots int  `json:"slots,omitempty"` // from 1 to 10000
	Reset bool `json:"reset,omitempty"` // back to the configuration
}

func (h handlers) scaleWorkers(req *web.Request) error { return h.scale(req, "") }

func (h handlers) scaleWorker(req *web.Request) error {
	id, err := req.NameParam("id")
	if err != nil {
		return err
	}
	return h.scale(req, id)
}

func (h handlers) scale(req *web.Request, id string) error {
	var change SlotsChange
	if err := req.Decode(&change); err != nil {
		return err
	}
	if change.Reset == (change.Slots != 0) {
		return web.RefuseField(http.StatusUnprocessableEntity, "slots",
			"Give either slots, from 1 to %d, or reset.", jobs.MaxSlots)
	}
	if err := req.MayWork(); err != nil {
		return err
	}
	workers, err := h.Scale(req.Ctx(), id, change.Slots)
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, web.Affected{Changed: workers})
}

func (h handlers) restartWorkers(req *web.Request) error {
	alive, err := h.RestartWorkers(req.Ctx())
	if err != nil {
		return err
	}
	return req.JSON(http.StatusOK, web.Affected{Changed: alive})
}
