package backups

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// MomentRestorer is a Recoverer that also brings the database to a moment.
type MomentRestorer interface {
	// PlanMoment says what that would do, and changes nothing. at is a time of UTC as a
	// person wrote it; into names a new database, "" is the site's.
	PlanMoment(ctx context.Context, at, into string) (MomentPlan, error)
	// RestoreMoment enqueues it; confirm is the plan's, typed by a person.
	RestoreMoment(ctx context.Context, plan MomentPlan, confirm string) (jobs.Receipt, error)
}

// MomentPlan says what bringing the database to a moment would do.
type MomentPlan struct {
	At   time.Time
	Into string // names a new database; "" is the site's
	// Backup is loaded first, and what the archived log has after it is applied to it.
	Backup, Destination string
	Summary             phrase.Summary
	Confirm             string
}

type momentPageData struct {
	Moments []Moments
	// At is the last moment that can be restored, as a form's field has it.
	At string
}

// fieldTime is how a form's field of a date and a time reads and writes them.
const fieldTime = "2006-01-02T15:04:05"

func (h handlers) momentPage(r *web.Request) error {
	if _, err := h.momentRestorer(); err != nil {
		return err
	}
	list, err := h.moments(r.Ctx())
	if err != nil {
		return fmt.Errorf("looking which moments can be restored: %w", err)
	}
	v := momentPageData{Moments: list.Items}
	view := r.View()
	var newest time.Time
	for i := range v.Moments {
		v.Moments[i].Missing = view.Text(v.Moments[i].Missing)
		if v.Moments[i].Until.After(newest) {
			newest = v.Moments[i].Until
		}
	}
	if !newest.IsZero() {
		v.At = newest.UTC().Format(fieldTime)
	}
	return r.Show(web.PageView{Name: "moment", Data: v, Ready: true})
}

func (h handlers) momentRestorer() (MomentRestorer, error) {
	restorer, can := h.port.(MomentRestorer)
	if !can {
		return nil, web.NotConfigured("restoring to a moment over the web; use cmsjobs backup restore --at")
	}
	return restorer, nil
}

// restoreMomentByForm shows what a restore to a moment would do, and enqueues it once that
// is confirmed.
func (h handlers) restoreMomentByForm(r *web.Request) error {
	restorer, err := h.momentRestorer()
	if err != nil {
		return err
	}
	if err := r.MayRunType(restoreKind); err != nil {
		return err
	}
	at, into := strings.TrimSpace(r.FormValue("at")), strings.TrimSpace(r.FormValue("into"))
	if len(at) > mostMoment {
		return web.RefuseField(http.StatusBadRequest, "at", "The moment is no time.")
	}
	plan, err := restorer.PlanMoment(r.Ctx(), at, into)
	if err != nil {
		return fmt.Errorf("planning the restore to a moment: %w", err)
	}
	if yes, err := r.SureOfPlan("", plan.Confirm, planned(r, plan.Summary)); !yes || err != nil {
		return err
	}
	receipt, err := restorer.RestoreMoment(r.Ctx(), plan, plan.Confirm)
	if err != nil {
		return fmt.Errorf("restoring to a moment: %w", err)
	}
	detail := "to " + plan.At.UTC().Format(time.DateTime) + " UTC as " + receipt.UUID
	if plan.Into != "" {
		detail = "into " + plan.Into + ", " + detail
	}
	r.Audit(plan.Backup, detail)
	return r.Follow("/admin/backups", receipt)
}

// mostMoment is how many characters a time has at most.
const mostMoment = 64
