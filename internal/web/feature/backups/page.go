package backups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/chart"
	"github.com/cmsjobs/cmsjobs/internal/web/format"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
	"github.com/cmsjobs/cmsjobs/internal/web/summary"
)

// Restorer is a Backups that can also restore. It says first what a restore
// would change; Confirm of the plan must come back, typed by a person.
type Restorer interface {
	PlanRestore(ctx context.Context, id string, part RestorePart) (RestorePlan, error)
	// RestoreBackup enqueues the restore.
	RestoreBackup(ctx context.Context, id string, part RestorePart, confirm string,
		allow RestoreAllowance) (jobs.Receipt, error)
}

// RestoreAllowance is what a person allows beside the usual.
type RestoreAllowance struct {
	// Unknown restores a backup that this installation never made, or that was altered.
	Unknown bool
	// Executable restores files that a web server could execute.
	Executable bool
}

// restoreKind is what confirming a restore makes run.
const restoreKind = "backup.restore"

// RestorePart is what of a backup is restored.
type RestorePart string

// The parts that pages offer.
const (
	RestoreAll      RestorePart = "all"
	RestoreDatabase RestorePart = "database"
	RestoreFiles    RestorePart = "files"
)

// RestorePlan is what a restore would change.
type RestorePlan struct {
	Summary phrase.Summary
	// Unread is true when the files were not compared in time.
	Unread  bool
	Confirm string
	// Untrusted says what is wrong with the backup's origin; "" when nothing is.
	Untrusted string
	// Executable counts files that a web server could execute; they are left out
	// unless allowed.
	Executable int64
}

// BackupWatcher is a Backups that can say how far its backups may be relied on.
type BackupWatcher interface {
	BackupHealth(ctx context.Context) (BackupHealth, error)
}

// BackupHealth is how the backups are.
type BackupHealth struct {
	Verified   *time.Time // the last restore that proved one; nil when never
	VerifiedID string
	// Checked is when a backup was last read back without a restore, where that was
	// later; Note says why it was not restored.
	Checked  *time.Time
	Note     string
	Warnings []string
	// Repositories are the faults of the repositories of files.
	Repositories []RepositoryFault
}

// RepositoryFault is what is wrong with the repository at a destination.
type RepositoryFault struct {
	// Fault is unreadable, damaged, locked, held or unverified.
	Fault       string
	Destination string
	Detail      string // the error, the lock, or the days within which a verification is due
}

type backupsPageData struct {
	Configured bool
	Restores   bool
	Browses    bool
	ToMoment   bool // a restore to a moment can be begun here
	Health     *BackupHealth
	// Moments are the spans within which any second can be restored.
	Moments []Moments
	BackupList
	Plot     template.HTML
	Calendar []calendarDay
	Weekdays []string
	Total    int64
	web.RunActions
}

func (h handlers) backupsPage(r *web.Request) error {
	_, restores := h.port.(Restorer)
	_, browses := h.port.(Browser)
	_, toMoment := h.port.(MomentRestorer)
	v := backupsPageData{Configured: h.port != nil, Restores: restores, Browses: browses, ToMoment: toMoment}
	var live string
	v.RunActions, live = r.RunActions("backup.generate", "backup.verify")
	if !v.Configured {
		return r.Show(web.PageView{Name: "backups", Data: v, Live: live, Ready: true})
	}
	ready, err := h.status(r, &v)
	if err != nil {
		return err
	}
	view := r.View()
	v.BackupList = shownList(view, v.BackupList)
	if v.Health != nil {
		v.Health.Warnings = ops.Each(v.Health.Warnings, view.Text)
		v.Health.Repositories = ops.Each(v.Health.Repositories, func(f RepositoryFault) RepositoryFault {
			f.Detail = view.Text(f.Detail)
			return f
		})
	}
	for _, b := range v.Items {
		v.Total += b.Size
	}
	v.Plot, v.Calendar = backupPlot(r.Printer(), v.Items), calendar(r.Printer(), r.Now(), v.Items)
	v.Weekdays = strings.Fields(r.Text("backups.weekdays"))
	return r.Show(web.PageView{Name: "backups", Data: v, Live: live, Ready: ready})
}

// status fills in the list and how the backups are. The page itself says that a
// destination is unavailable: that is when people come here. ready is false
// while answers are awaited.
func (h handlers) status(r *web.Request, v *backupsPageData) (ready bool, err error) {
	list, ready, err := web.Cached(r, "backups", h.knownBackups)
	v.BackupList = list
	if r.Ctx().Err() != nil {
		return false, r.Ctx().Err()
	}
	if err != nil {
		r.Log().Error("backups not listed", "event", "backup.list_failed", "error", err)
		v.Unavailable, ready = err.Error(), true
	}
	w, watches := h.port.(BackupWatcher)
	if !watches {
		return ready, nil
	}
	health, seen, err := web.Cached(r, "backup health", w.BackupHealth)
	if err != nil {
		return false, fmt.Errorf("looking at the backups: %w", err)
	}
	if seen {
		v.Health = &health
	}
	moments, known, err := web.Cached(r, "backup moments", h.moments)
	if err != nil { // the list says what does not answer
		r.Log().Error("moments that can be restored not listed", "event", "backup.list_failed", "error", err)
		known = true
	}
	v.Moments = moments.Items
	return ready && seen && known, nil
}

// backupPlot shows how sizes grew, oldest first.
func backupPlot(lang locale.Printer, list []Backup) template.HTML {
	if len(list) < 2 {
		return ""
	}
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, func(a, b Backup) int { return a.CreatedAt.Compare(b.CreatedAt) })
	d := chart.Chart{Name: lang.Text("backups.plot", len(sorted)),
		First: sorted[0].CreatedAt.UTC().Format("2006-01-02"), Last: sorted[len(sorted)-1].CreatedAt.UTC().Format(
			"2006-01-02")}
	var top int64
	for _, b := range sorted {
		top = max(top, b.Size)
		shape := chart.Bar{Label: b.CreatedAt.UTC().Format("2006-01-02 15:04") + ": " + format.Bytes(b.Size),
			Low: float64(b.Size)}
		if b.Status != "complete" {
			shape.Low, shape.High = 0, shape.Low
		}
		d.Bars = append(d.Bars, shape)
	}
	d.Top = format.Bytes(top)
	return d.SVG()
}

// backupNamed finds one of the list, so that questions can say what it is.
func (h handlers) backupNamed(r *web.Request) (Backup, error) {
	id, err := r.NameParam("id")
	if err != nil {
		return Backup{}, err
	}
	list, err := h.port.Backups(r.Ctx())
	if err != nil && !errors.Is(err, web.ErrUnavailable) {
		return Backup{}, fmt.Errorf("listing backups: %w", err)
	}
	for _, b := range list {
		if b.ID == id {
			return b, nil
		}
	}
	// it may lie where nobody answers
	return Backup{}, fmt.Errorf("the backup %s: %w", id, cmp.Or(err, jobs.ErrNotFound))
}

func (h handlers) deleteBackupByForm(r *web.Request) error {
	b, err := h.backupNamed(r)
	if err != nil {
		return err
	}
	if yes, err := r.Sure(r.Text("backups.delete.ask", b.ID, format.Bytes(b.Size),
		b.CreatedAt.UTC().Format("2006-01-02 15:04")), "delete"); !yes || err != nil {
		return err
	}
	if err := h.port.DeleteBackup(r.Ctx(), b.ID); err != nil {
		return fmt.Errorf("deleting the backup %s: %w", b.ID, err)
	}
	return r.Back("/admin/backups", "backups.delete.done")
}

func (h handlers) restoreByForm(r *web.Request) error {
	b, err := h.backupNamed(r)
	if err != nil {
		return err
	}
	restorer, can := h.port.(Restorer)
	if !can {
		return web.NotConfigured("restoring over the web; use cmsjobs restore")
	}
	part := RestorePart(r.FormValue("part"))
	plan, err := restorer.PlanRestore(r.Ctx(), b.ID, part)
	if err != nil {
		return fmt.Errorf("planning the restore of %s: %w", b.ID, err)
	}
	text := r.Text("backups.restore.ask", b.ID, b.CreatedAt.UTC().Format("2006-01-02 15:04")) + " " +
		r.Text("backups.restore.first")
	if yes, err := r.SureOfPlan(text, plan.Confirm, planned(r, plan.Summary), plan.boxes(r.Printer())...); !yes ||
		err != nil {
		return err
	}
	if err := r.MayRunType(restoreKind); err != nil {
		return err
	}
	allow := RestoreAllowance{Unknown: r.FormValue(boxUnknown) == "yes",
		Executable: r.FormValue(boxExecutable) == "yes"}
	receipt, err := restorer.RestoreBackup(r.Ctx(), b.ID, part, plan.Confirm, allow)
	if err != nil {
		return fmt.Errorf("restoring %s: %w", b.ID, err)
	}
	r.Audit(b.ID, "as "+receipt.UUID)
	return r.Follow("/admin/backups", receipt)
}

// planned is a summary in the reader's language.
func planned(r *web.Request, s phrase.Summary) []web.Planned {
	return []web.Planned{{View: summary.In(r.Printer(), s)}}
}

// The boxes of the question before a restore.
const (
	boxUnknown    = "trust_unknown"
	boxExecutable = "allow_executable"
)

// boxes are what a person must or may tick.
func (p RestorePlan) boxes(lang locale.Printer) (boxes []web.Box) {
	if p.Untrusted != "" {
		boxes = append(boxes, web.Box{Name: boxUnknown, Text: lang.Text("backups.restore.unknown", p.Untrusted),
			Required: true})
	}
	if p.Executable > 0 || p.Unread {
		boxes = append(boxes, web.Box{Name: boxExecutable, Text: lang.Text("backups.restore.executable", p.Executable)})
	}
	return boxes
}
