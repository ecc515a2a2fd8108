package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// Restorer is a Backups that can also restore. It says first what a restore
// would change; Confirm of the plan must come back, typed by a person.
type Restorer interface {
	PlanRestore(ctx context.Context, id string, part RestorePart) (RestorePlan, error)
	// RestoreBackup enqueues the restore.
	RestoreBackup(ctx context.Context, id string, part RestorePart, confirm string, allow RestoreAllowance) (jobs.Receipt, error)
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
	Database               string // that would be written to; "" when none
	Tables                 int64
	RowsNow, RowsThen      int64 // in these tables; now is the server's estimate
	NewFiles, ChangedFiles int64
	// Unread is true when the files were not compared in time: then every file
	// of the backup counts as changed.
	Unread  bool
	Confirm string
	// Untrusted says what is wrong with the backup's origin; "" when nothing is.
	Untrusted string
	// Executable counts files that a web server could execute; they are left out
	// unless allowed.
	Executable int64
	// Warnings say what will not be as it was, as the server is another one.
	Warnings []string
}

// BackupWatcher is a Backups that can say how far its backups may be relied on.
type BackupWatcher interface {
	BackupHealth(ctx context.Context) (BackupHealth, error)
}

// BackupHealth is how the backups are.
type BackupHealth struct {
	Verified   *time.Time // the last restore that proved one; nil when never
	VerifiedID string
	Warnings   []string
}

type backupsPageData struct {
	Configured bool
	Restores   bool
	Health     *BackupHealth
	Backups    []Backup
	// Away is which places did not list theirs and why; "" when all did.
	Away  string
	Plot  template.HTML
	Total int64
	runActionState
}

func (s *Server) backupsPage(c echo.Context) error {
	_, restores := s.cfg.Backups.(Restorer)
	v := backupsPageData{Configured: s.cfg.Backups != nil, Restores: restores}
	var live string
	v.runActionState, live = s.runActions(c, "backup.generate", "backup.verify")
	if !v.Configured {
		return s.showLive(c, "backups", "backups.title", live, v)
	}
	ready, err := s.lookAtBackups(c.Request().Context(), &v)
	if err != nil {
		return err
	}
	view := s.viewer(c)
	v.Backups, v.Away = ops.Each(v.Backups, view.backup), view.Text(v.Away)
	if v.Health != nil {
		v.Health.Warnings = ops.Each(v.Health.Warnings, view.Text)
	}
	for _, b := range v.Backups {
		v.Total += b.Size
	}
	v.Plot = backupPlot(language(c), v.Backups)
	return s.showSoon(c, "backups", "backups.title", live, ready, v)
}

// lookAtBackups fills in the list and what is to be said of it. A place that is
// away is told on the page: it is when people come here. ready is false while
// answers are still awaited.
func (s *Server) lookAtBackups(ctx context.Context, v *backupsPageData) (ready bool, err error) {
	list, ready, err := s.backupsKept(ctx)
	v.Backups, v.Away = list.Items, list.Away
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		s.cfg.Log.Error("backups not listed", "event", "backup.list_failed", "error", err)
		v.Away, ready = err.Error(), true
	}
	w, watches := s.cfg.Backups.(BackupWatcher)
	if !watches {
		return ready, nil
	}
	health, seen, err := s.backupHealthKept(ctx, w)
	if err != nil {
		return false, fmt.Errorf("looking at the backups: %w", err)
	}
	if seen {
		v.Health = &health
	}
	return ready && seen, nil
}

// backupPlot shows how sizes grew, oldest first.
func backupPlot(lang string, list []Backup) template.HTML {
	if len(list) < 2 {
		return ""
	}
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, func(a, b Backup) int { return a.CreatedAt.Compare(b.CreatedAt) })
	d := chart{Name: translate(lang, "backups.plot", len(sorted)), First: sorted[0].CreatedAt.UTC().Format("2006-01-02"), Last: sorted[len(sorted)-1].CreatedAt.UTC().Format("2006-01-02")}
	var top int64
	for _, b := range sorted {
		top = max(top, b.Size)
		shape := chartBar{Label: b.CreatedAt.UTC().Format("2006-01-02 15:04") + ": " + size(b.Size), Low: float64(b.Size)}
		if b.Status != "complete" {
			shape.Low, shape.High = 0, shape.Low
		}
		d.Bars = append(d.Bars, shape)
	}
	d.Top = size(top)
	return d.svg()
}

// backupNamed finds one of the list, so that questions can say what it is.
func (s *Server) backupNamed(c echo.Context) (Backup, error) {
	id, err := nameParam(c, "id")
	if err != nil {
		return Backup{}, err
	}
	list, err := s.cfg.Backups.Backups(c.Request().Context())
	if err != nil && !errors.Is(err, ErrUnavailable) {
		return Backup{}, fmt.Errorf("listing backups: %w", err)
	}
	for _, b := range list {
		if b.ID == id {
			return b, nil
		}
	}
	return Backup{}, fmt.Errorf("the backup %s: %w", id, cmp.Or(err, jobs.ErrNotFound)) // it may lie where nobody answers
}

func (s *Server) deleteBackupByForm(c echo.Context) error {
	b, err := s.backupNamed(c)
	if err != nil {
		return err
	}
	if yes, err := s.sure(c, translate(language(c), "backups.delete.ask", b.ID, size(b.Size), b.CreatedAt.UTC().Format("2006-01-02 15:04")), "delete"); !yes || err != nil {
		return err
	}
	if err := s.cfg.Backups.DeleteBackup(c.Request().Context(), b.ID); err != nil {
		return fmt.Errorf("deleting the backup %s: %w", b.ID, err)
	}
	return s.back(c, "/admin/backups", "backups.delete.done")
}

func (s *Server) restoreByForm(c echo.Context) error {
	b, err := s.backupNamed(c)
	if err != nil {
		return err
	}
	r, can := s.cfg.Backups.(Restorer)
	if !can {
		return notConfigured("restoring over the web; use cmsjobs restore")
	}
	ctx, part := c.Request().Context(), RestorePart(c.FormValue("part"))
	plan, err := r.PlanRestore(ctx, b.ID, part)
	if err != nil {
		return fmt.Errorf("planning the restore of %s: %w", b.ID, err)
	}
	if yes, err := s.sureOf(c, question{Text: plan.question(language(c), b), Typed: plan.Confirm, Boxes: plan.boxes(language(c))}); !yes || err != nil {
		return err
	}
	if err := s.mayRunKind(c, restoreKind); err != nil {
		return err
	}
	allow := RestoreAllowance{Unknown: c.FormValue(boxUnknown) == "yes", Executable: c.FormValue(boxExecutable) == "yes"}
	receipt, err := r.RestoreBackup(ctx, b.ID, part, plan.Confirm, allow)
	if err != nil {
		return fmt.Errorf("restoring %s: %w", b.ID, err)
	}
	setAuditTarget(c, b.ID, "as "+receipt.UUID)
	return c.Redirect(http.StatusSeeOther, following("/admin/backups", receipt.UUID))
}

// The boxes of the question before a restore.
const (
	boxUnknown    = "trust_unknown"
	boxExecutable = "allow_executable"
)

// boxes are what a person must or may tick.
func (p RestorePlan) boxes(lang string) (boxes []box) {
	if p.Untrusted != "" {
		boxes = append(boxes, box{Name: boxUnknown, Text: translate(lang, "backups.restore.unknown", p.Untrusted), Required: true})
	}
	if p.Executable > 0 || p.Unread {
		boxes = append(boxes, box{Name: boxExecutable, Text: translate(lang, "backups.restore.executable", p.Executable)})
	}
	return boxes
}

// question tells in numbers what would happen.
func (p RestorePlan) question(lang string, b Backup) string {
	text := []string{translate(lang, "backups.restore.ask", b.ID, b.CreatedAt.UTC().Format("2006-01-02 15:04"))}
	if p.Database != "" {
		text = append(text, translate(lang, "backups.restore.tables", p.Tables, p.Database, p.RowsNow, p.RowsThen))
	}
	switch {
	case p.Unread:
		text = append(text, translate(lang, "backups.restore.unread", p.ChangedFiles))
	case p.NewFiles+p.ChangedFiles > 0:
		text = append(text, translate(lang, "backups.restore.files", p.NewFiles, p.ChangedFiles))
	}
	for _, warning := range p.Warnings {
		text = append(text, warning+".")
	}
	return strings.Join(append(text, translate(lang, "backups.restore.first")), " ")
}
