package queues

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

const workersPath = "/admin/workers"

func (h handlers) scaleByForm(req *web.Request) error {
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
		n, err := h.scaleTo(req, id)
		if err != nil {
			return err
		}
		undo := web.Undo{Path: workersPath + "/" + url.PathEscape(id) + "/scale", Fields: slotsField(w.Wanted.Ordered)}
		if n == 0 {
			return req.BackUndoable(workersPath, undo, "workers.scale.reset", id)
		}
		return req.BackUndoable(workersPath, undo, "workers.scale.done", id, n)
	}
	return fmt.Errorf("the worker %s: %w", id, jobs.ErrNotFound)
}

// scaleAllByForm offers to take the change back where that brings all back: orders for
// single workers are gone.
func (h handlers) scaleAllByForm(req *web.Request) error {
	v, err := h.workers(req)
	if err != nil {
		return err
	}
	n, err := h.scaleTo(req, "")
	if err != nil {
		return err
	}
	key, args := "workers.scaleall.done", []any{n}
	if n == 0 {
		key, args = "workers.scaleall.reset", nil
	}
	if v.Single {
		return req.Back(workersPath, key, args...)
	}
	return req.BackUndoable(workersPath, web.Undo{Path: workersPath + "/scale", Fields: slotsField(v.Slots.Ordered)},
		key, args...)
}

// scaleTo gives the form's number of slots to a worker, or to all; 0 takes that back.
func (h handlers) scaleTo(req *web.Request, id string) (slots int, err error) {
	if slots, err = strconv.Atoi(req.FormValue("slots")); err != nil {
		return 0, web.RefuseField(http.StatusUnprocessableEntity, "slots",
			"Give either slots, from 1 to %d, or reset.", jobs.MaxSlots)
	}
	if err := req.MayWork(); err != nil {
		return 0, err
	}
	_, err = h.Scale(req.Ctx(), id, slots)
	return slots, err
}

func slotsField(n int) [][2]string { return [][2]string{{"slots", strconv.Itoa(n)}} }
