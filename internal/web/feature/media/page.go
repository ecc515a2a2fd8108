package media

import (
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/format"
)

type mediaPageData struct {
	Configured bool
	Status     MediaStatus
	Waiting    int64 // media.processImage jobs that wait or run
	Failed     []ops.JobView
	web.RunActions
}

const mediaType = "media.processImage"

func (h handlers) mediaPage(r *web.Request) error {
	v := mediaPageData{Configured: h.port != nil}
	v.RunActions, _ = r.RunActions(mediaType)
	if !v.Configured {
		return r.Show(web.PageView{Name: "media", Data: v, Ready: true})
	}
	ctx := r.Ctx()
	var ready bool
	var err error
	if v.Status, ready, err = web.Cached(r, "media", h.port.MediaStatus); err != nil {
		return fmt.Errorf("counting pictures: %w", err)
	}
	if v.Waiting, err = r.Ledger().Count(ctx, jobs.Filter{Types: []string{mediaType}, Statuses: []jobs.Status{
		jobs.StatusQueued, jobs.StatusProcessing}}); err != nil {
		return fmt.Errorf("counting jobs: %w", err)
	}
	failed, err := r.Ledger().Jobs(ctx, jobs.Filter{Types: []string{mediaType}, Statuses: []jobs.Status{
		jobs.StatusFailed}}, jobs.Page{Limit: 20, Uncounted: true})
	if err != nil {
		return fmt.Errorf("listing failed jobs: %w", err)
	}
	v.Failed = ops.Each(failed.Items, func(x jobs.Record) ops.JobView { return r.View().Job(x) })
	live := ""
	if v.Waiting > 0 {
		live = web.LiveList
	}
	return r.Show(web.PageView{Name: "media", Data: v, Live: live, Ready: ready})
}

func (h handlers) regenerateByForm(r *web.Request) error {
	ctx, missing := r.Ctx(), r.FormValue("which") != "all"
	status, err := h.port.MediaStatus(ctx)
	if err != nil {
		return fmt.Errorf("counting pictures: %w", err)
	}
	key, n := "media.all.ask", status.Pictures
	if missing {
		key, n = "media.missing.ask", status.Missing
	}
	if yes, err := r.Sure(r.Text(key, format.Number(n)), ""); !yes || err != nil {
		return err
	}
	if err := r.MayRunType(mediaType); err != nil {
		return err
	}
	count, err := h.port.Regenerate(ctx, missing)
	if err != nil {
		return fmt.Errorf("enqueuing thumbnails: %w", err)
	}
	r.Audit("", fmt.Sprintf("%d pictures", count))
	return r.Back("/admin/media", "media.done", format.Number(count))
}
