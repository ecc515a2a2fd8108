package schedules

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// ScheduleChange changes an entry; absent fields stay as they are.
type ScheduleChange struct {
	Cron    *string         `json:"cron,omitempty"`
	Paused  *bool           `json:"paused,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Reset   bool            `json:"reset,omitempty"` // back to the configuration
}

type handlers struct {
	ops.Control
	Ticker Ticker
}

// Ticker does one round of what the service does by itself: enqueues due
// ticks, runs due jobs until none is left or ctx ends (POST /api/cron/tick).
type Ticker interface {
	Tick(ctx context.Context) (ops.TickReport, error)
}

func (h handlers) listSchedules(req *web.Request) error {
	list, err := h.Schedules.Schedules(req.Ctx())
	if err != nil {
		return fmt.Errorf("listing the schedule: %w", err)
	}
	return req.JSON(http.StatusOK, ops.ItemsOf(list, req.View().Schedule))
}

// namedEntry finds the entry that the path names.
func (h handlers) namedEntry(req *web.Request) (string, jobs.ScheduleRecord, error) {
	name, err := req.NameParam("name")
	if err != nil {
		return name, jobs.ScheduleRecord{}, err
	}
	r, err := h.Schedule(req.Ctx(), name)
	return name, r, err
}

func (h handlers) runSchedule(req *web.Request) error {
	name, r, err := h.namedEntry(req)
	if err != nil {
		return err
	}
	receipt, err := h.runEntry(req, r)
	if err != nil {
		return err
	}
	answer := ops.EnqueuedView(jobs.Spec{Type: r.Type}, receipt, req.Now())
	req.Audit(name, "as "+receipt.UUID)
	return req.JSON(http.StatusCreated, answer)
}

// runEntry enqueues an entry's job now, if the caller may.
func (h handlers) runEntry(req *web.Request, r jobs.ScheduleRecord) (jobs.Receipt, error) {
	if err := req.MayRun(r.Type, r.Data); err != nil {
		return jobs.Receipt{}, err
	}
	return h.RunSchedule(req.Ctx(), r.Name)
}

// changeEntryTo changes an entry, if the caller may make jobs run with the
// payload that it has then. A reset asks for the type only: the payload is the
// configuration's. Who may operate may let its ticks pass.
func (h handlers) changeEntryTo(req *web.Request, r jobs.ScheduleRecord,
	change jobs.ScheduleChange) (jobs.ScheduleRecord, error) {
	data := r.Data
	if change.Data != nil {
		data = change.Data
	}
	var err error
	switch {
	case ops.OnlyPauses(change):
	case change.Reset && change.Data == nil:
		err = req.MayRunType(r.Type)
	case change.Data != nil:
		err = req.MayRunNew(r.Type, data)
	default:
		err = req.MayRun(r.Type, data)
	}
	if err != nil {
		return r, err
	}
	return h.ChangeSchedule(req.Ctx(), r.Name, change)
}

func (h handlers) changeSchedule(req *web.Request) error {
	var change ScheduleChange
	if err := req.Decode(&change); err != nil {
		return err
	}
	return h.reschedule(req, jobs.ScheduleChange{Cron: change.Cron, Paused: change.Paused, Data: change.Payload,
		Reset: change.Reset})
}

func (h handlers) pauseSchedule(req *web.Request) error {
	paused := true
	return h.reschedule(req, jobs.ScheduleChange{Paused: &paused})
}

func (h handlers) continueSchedule(req *web.Request) error {
	paused := false
	return h.reschedule(req, jobs.ScheduleChange{Paused: &paused})
}

func (h handlers) reschedule(req *web.Request, change jobs.ScheduleChange) error {
	name, before, err := h.namedEntry(req)
	if err != nil {
		return err
	}
	if change.Data != nil { // a payload may come back as it was shown
		if change.Data, err = req.Unmask(before.Type, change.Data, before.Data); err != nil {
			return err
		}
	}
	after, err := h.changeEntryTo(req, before, change)
	if err != nil {
		return err
	}
	req.Audit(name, fmt.Sprintf("cron %q→%q paused %t→%t", before.Cron, after.Cron, before.Paused, after.Paused))
	return req.JSON(http.StatusOK, req.View().Schedule(after))
}

func (h handlers) scheduleHistory(req *web.Request) error {
	name, err := req.NameParam("name")
	if err != nil {
		return err
	}
	p, err := req.ListPage()
	if err != nil {
		return err
	}
	list, err := h.Schedules.Ticks(req.Ctx(), name, p)
	if err != nil {
		return fmt.Errorf("listing ticks of %s: %w", name, err)
	}
	return req.JSON(http.StatusOK, ops.Listed(list, p, req.View().Tick))
}

// tickTime is how long one call of the cron route may work.
const tickTime = 5 * time.Minute

func (h handlers) tick(req *web.Request) error {
	if err := req.MayWork(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(req.Ctx(), tickTime)
	defer cancel()
	report, err := h.Ticker.Tick(ctx)
	if err != nil {
		return fmt.Errorf("doing one round: %w", err)
	}
	return req.JSON(http.StatusOK, report)
}
