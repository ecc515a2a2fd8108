package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// ScheduleChange changes an entry; absent fields stay as they are.
type ScheduleChange struct {
	Cron    *string         `json:"cron,omitempty"`
	Paused  *bool           `json:"paused,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Reset   bool            `json:"reset,omitempty"` // back to the configuration
}

func (s *Server) listSchedules(c echo.Context) error {
	list, err := s.cfg.Schedules.Schedules(c.Request().Context())
	if err != nil {
		return fmt.Errorf("listing the schedule: %w", err)
	}
	return c.JSON(http.StatusOK, ops.ItemsOf(list, s.viewer(c).Schedule))
}

// entry finds an entry by its name.
func (s *Server) entry(ctx context.Context, name string) (jobs.ScheduleRecord, error) {
	list, err := s.cfg.Schedules.Schedules(ctx)
	if err != nil {
		return jobs.ScheduleRecord{}, fmt.Errorf("listing the schedule: %w", err)
	}
	for _, r := range list {
		if r.Name == name {
			return r, nil
		}
	}
	return jobs.ScheduleRecord{}, fmt.Errorf("the schedule entry %q: %w", name, jobs.ErrNotFound)
}

// namedEntry is entry of the name in the path.
func (s *Server) namedEntry(c echo.Context) (string, jobs.ScheduleRecord, error) {
	name, err := nameParam(c, "name")
	if err != nil {
		return name, jobs.ScheduleRecord{}, err
	}
	r, err := s.entry(c.Request().Context(), name)
	return name, r, err
}

func (s *Server) runSchedule(c echo.Context) error {
	name, r, err := s.namedEntry(c)
	if err != nil {
		return err
	}
	receipt, err := s.runEntry(c, r)
	if err != nil {
		return err
	}
	answer := ops.EnqueuedView(jobs.Spec{Type: r.Type}, receipt, s.cfg.Now())
	setAuditTarget(c, name, "as "+receipt.UUID)
	return c.JSON(http.StatusCreated, answer)
}

// runEntry enqueues an entry's job now, if the caller may.
func (s *Server) runEntry(c echo.Context, r jobs.ScheduleRecord) (jobs.Receipt, error) {
	if err := s.mayRun(c, r.Type, r.Data); err != nil {
		return jobs.Receipt{}, err
	}
	receipt, err := s.cfg.Schedules.RunSchedule(c.Request().Context(), r.Name)
	if err != nil {
		return receipt, fmt.Errorf("running the schedule entry %s: %w", r.Name, err)
	}
	return receipt, nil
}

// changeEntryTo changes an entry, if the caller may make jobs run with the
// payload that it has then. A reset asks for the type only: the payload is the
// configuration's. Who may operate may let its ticks pass.
func (s *Server) changeEntryTo(c echo.Context, r jobs.ScheduleRecord, change jobs.ScheduleChange) error {
	onlyPauses := change.Paused != nil && *change.Paused && change.Cron == nil && change.Data == nil && !change.Reset
	data := r.Data
	if change.Data != nil {
		data = change.Data
	}
	var err error
	switch {
	case onlyPauses:
	case change.Reset && change.Data == nil:
		err = s.mayRunKind(c, r.Type)
	default:
		err = s.mayRun(c, r.Type, data)
	}
	if err != nil {
		return err
	}
	if err := s.cfg.Schedules.ChangeSchedule(c.Request().Context(), r.Name, change); err != nil {
		return fmt.Errorf("changing the schedule entry %s: %w", r.Name, err)
	}
	return nil
}

func (s *Server) changeSchedule(c echo.Context) error {
	var change ScheduleChange
	if err := body(c, &change); err != nil {
		return err
	}
	return s.reschedule(c, jobs.ScheduleChange{Cron: change.Cron, Paused: change.Paused, Data: change.Payload, Reset: change.Reset})
}

func (s *Server) pauseSchedule(c echo.Context) error {
	paused := true
	return s.reschedule(c, jobs.ScheduleChange{Paused: &paused})
}

func (s *Server) continueSchedule(c echo.Context) error {
	paused := false
	return s.reschedule(c, jobs.ScheduleChange{Paused: &paused})
}

func (s *Server) reschedule(c echo.Context, change jobs.ScheduleChange) error {
	name, before, err := s.namedEntry(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	if change.Data != nil { // a payload may come back as it was shown
		if change.Data, err = s.unmasked(c, before.Type, change.Data, before.Data); err != nil {
			return err
		}
	}
	if err := s.changeEntryTo(c, before, change); err != nil {
		return err
	}
	after, err := s.entry(ctx, name)
	if err != nil {
		return err
	}
	setAuditTarget(c, name, fmt.Sprintf("cron %q→%q paused %t→%t", before.Cron, after.Cron, before.Paused, after.Paused))
	return c.JSON(http.StatusOK, s.viewer(c).Schedule(after))
}

func (s *Server) scheduleHistory(c echo.Context) error {
	name, err := nameParam(c, "name")
	if err != nil {
		return err
	}
	p, err := s.pageOf(c)
	if err != nil {
		return err
	}
	list, err := s.cfg.Schedules.Ticks(c.Request().Context(), name, p)
	if err != nil {
		return fmt.Errorf("listing ticks of %s: %w", name, err)
	}
	return c.JSON(http.StatusOK, ops.Listed(list, p, s.viewer(c).Tick))
}

// tickTime is how long one call of the cron route may work.
const tickTime = 5 * time.Minute

func (s *Server) tick(c echo.Context) error {
	if err := denied(s.effects.MayWork(who(c))); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), tickTime)
	defer cancel()
	report, err := s.cfg.Ticker.Tick(ctx)
	if err != nil {
		return fmt.Errorf("doing one round: %w", err)
	}
	return c.JSON(http.StatusOK, report)
}
