package web

import (
	"fmt"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

type mediaPageData struct {
	Configured bool
	Status     MediaStatus
	Waiting    int64 // media.processImage jobs that wait or run
	Failed     []ops.JobView
	runActionState
}

const mediaKind = "media.processImage"

func (s *Server) mediaPage(c echo.Context) error {
	v := mediaPageData{Configured: s.cfg.Media != nil}
	v.runActionState, _ = s.runActions(c, mediaKind)
	if !v.Configured {
		return s.show(c, "media", "media.title", v)
	}
	ctx := c.Request().Context()
	var ready bool
	var err error
	if v.Status, ready, err = s.mediaKept(ctx); err != nil {
		return fmt.Errorf("counting pictures: %w", err)
	}
	if v.Waiting, err = s.cfg.Ledger.Count(ctx, jobs.Filter{Types: []string{mediaKind}, Statuses: []jobs.Status{jobs.StatusQueued, jobs.StatusProcessing}}); err != nil {
		return fmt.Errorf("counting jobs: %w", err)
	}
	failed, err := s.cfg.Ledger.Jobs(ctx, jobs.Filter{Types: []string{mediaKind}, Statuses: []jobs.Status{jobs.StatusFailed}}, jobs.Page{Limit: 20, Uncounted: true})
	if err != nil {
		return fmt.Errorf("listing failed jobs: %w", err)
	}
	v.Failed = ops.Each(failed.Items, func(r jobs.Record) ops.JobView { return s.viewer(c).Job(r) })
	live := ""
	if v.Waiting > 0 {
		live = liveList
	}
	return s.showSoon(c, "media", "media.title", live, ready, v)
}

func (s *Server) regenerateByForm(c echo.Context) error {
	ctx, missing := c.Request().Context(), c.FormValue("which") != "all"
	status, err := s.cfg.Media.MediaStatus(ctx)
	if err != nil {
		return fmt.Errorf("counting pictures: %w", err)
	}
	key, n := "media.all.ask", status.Pictures
	if missing {
		key, n = "media.missing.ask", status.Missing
	}
	if yes, err := s.sure(c, translate(language(c), key, grouped(n)), ""); !yes || err != nil {
		return err
	}
	if err := s.mayRunKind(c, mediaKind); err != nil {
		return err
	}
	count, err := s.cfg.Media.Regenerate(ctx, missing)
	if err != nil {
		return fmt.Errorf("enqueuing thumbnails: %w", err)
	}
	setAuditTarget(c, "", fmt.Sprintf("%d pictures", count))
	return s.back(c, "/admin/media", "media.done", grouped(count))
}
