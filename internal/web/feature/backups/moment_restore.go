package backups

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
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
	At       time.Time `json:"at"`
	Into     string    `json:"into,omitempty"` // names a new database; "" is the site's
	Database string    `json:"database"`       // that would be written to
	// Backup is loaded first, and what the log has after its Snapshot is applied to it.
	Backup      string    `json:"backup"`
	Destination string    `json:"destination"`
	Snapshot    time.Time `json:"snapshot_at"`
	Bytes       int64     `json:"bytes"` // of the log that is read
	// Uncounted is true when the log was not read in time: then what follows is not known.
	Uncounted    bool      `json:"uncounted,omitempty"`
	Transactions int64     `json:"transactions"`
	Last         time.Time `json:"last_at,omitzero"` // of these; zero where there are none
	// Next is the first transaction that is left out; zero where nothing followed.
	Next time.Time `json:"next_at,omitzero"`
	// WithoutRows is how many tables backups hold without their rows.
	WithoutRows int      `json:"tables_without_rows"`
	Warnings    []string `json:"warnings,omitempty"`
	// Confirm is what is typed, or sent, to do it.
	Confirm string `json:"confirm"`
	// Summary says all of it to people.
	Summary phrase.Summary `json:"-"`
}

// MomentRestore confirms it.
type MomentRestore struct {
	// Into is that of the plan.
	Into string `json:"into,omitempty"`
	// Confirm is the word of the plan.
	Confirm string `json:"confirm"`
}

func shown(t time.Time) string { return t.UTC().Format(time.DateTime) }

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
	plan, err := planMoment(r, restorer, r.FormValue("at"), r.FormValue("into"))
	if err != nil {
		return err
	}
	if yes, err := r.SureOfPlan("", plan.Confirm, planned(r, plan.Summary)); !yes || err != nil {
		return err
	}
	receipt, err := enqueueMoment(r, restorer, plan)
	if err != nil {
		return err
	}
	r.Audit(plan.Backup, plan.to()+" as "+receipt.UUID)
	return r.Follow("/admin/backups", receipt)
}

// to says in the audit log where a restore led.
func (p MomentPlan) to() string {
	if p.Into != "" {
		return "into " + p.Into + ", to " + shown(p.At) + " UTC"
	}
	return "to " + shown(p.At) + " UTC"
}

func planMoment(r *web.Request, restorer MomentRestorer, at, into string) (MomentPlan, error) {
	at, into = strings.TrimSpace(at), strings.TrimSpace(into)
	if len(at) > mostMoment {
		return MomentPlan{}, web.RefuseField(http.StatusBadRequest, "at", "The moment is no time.")
	}
	plan, err := restorer.PlanMoment(r.Ctx(), at, into)
	if err != nil {
		return plan, fmt.Errorf("planning the restore to a moment: %w", err)
	}
	return plan, nil
}

func (h handlers) showMomentPlan(r *web.Request) error {
	restorer, err := h.momentRestorer()
	if err != nil {
		return err
	}
	plan, err := planMoment(r, restorer, r.Param("at"), r.QueryParam("into"))
	if err != nil {
		return err
	}
	view := r.View()
	plan.Warnings = ops.Each(plan.Warnings, view.Text)
	return r.JSON(http.StatusOK, plan)
}

// restoreMoment enqueues a restore to a moment that the word of its plan confirms.
func (h handlers) restoreMoment(r *web.Request) error {
	restorer, err := h.momentRestorer()
	if err != nil {
		return err
	}
	var q MomentRestore
	if err := r.Decode(&q); err != nil {
		return err
	}
	plan, err := planMoment(r, restorer, r.Param("at"), q.Into)
	if err != nil {
		return err
	}
	if q.Confirm != plan.Confirm {
		return web.RefuseField(http.StatusUnprocessableEntity, "confirm",
			"Confirm it with the word that GET on the same address names.")
	}
	receipt, err := enqueueMoment(r, restorer, plan)
	if err != nil {
		return err
	}
	return r.AnswerJob(plan.Backup+": "+plan.to(), restoreKind, receipt)
}

// enqueueMoment enqueues a restore that was confirmed, for callers who may.
func enqueueMoment(r *web.Request, restorer MomentRestorer, plan MomentPlan) (jobs.Receipt, error) {
	if err := r.MayRunType(restoreKind); err != nil {
		return jobs.Receipt{}, err
	}
	receipt, err := restorer.RestoreMoment(r.Ctx(), plan, plan.Confirm)
	if err != nil {
		return receipt, fmt.Errorf("restoring to a moment: %w", err)
	}
	return receipt, nil
}

// mostMoment is how many characters a time has at most.
const mostMoment = 64
