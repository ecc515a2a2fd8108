package web_test

import (
	"context"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web/feature"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/backups"
)

// strangeSite has a backup that the installation never made, with a file that
// a web server could execute.
type strangeSite struct {
	*features
	allowed *[]backups.RestoreAllowance
}

func (h strangeSite) PlanRestore(ctx context.Context, id string, part backups.RestorePart) (backups.RestorePlan,
	error) {
	plan, err := h.features.PlanRestore(ctx, id, part)
	plan.Untrusted, plan.Executable = "NOBODY MADE THIS", 2
	return plan, err
}

func (h strangeSite) RestoreBackup(ctx context.Context, id string, part backups.RestorePart, confirm string,
	allow backups.RestoreAllowance) (jobs.Receipt, error) {
	*h.allowed = append(*h.allowed, allow)
	return h.features.RestoreBackup(ctx, id, part, confirm, allow)
}

// TestAnUnknownBackupIsRestoredOnlyWithATick types the right word without the
// tick first: nothing happens.
func TestAnUnknownBackupIsRestoredOnlyWithATick(t *testing.T) {
	var allowed []backups.RestoreAllowance
	s := newSite(t, jobstest.SQLite, furnished, func(c *config) {
		c.Parts = feature.Ports{Backups: strangeSite{c.Schedules.(*features), &allowed}}
	})
	v := s.visitor(t).signIn("admin").get("/admin/backups").press("files-b.tar.zst").sees("NOBODY MADE THIS",
		"I know its origin", "could execute (2 found)")
	v.press("sure", "typed", "cms-files", "trust_unknown", "", "allow_executable", "")
	if len(allowed) != 0 || !strings.Contains(v.page, "NOBODY MADE THIS") {
		t.Fatalf("without the tick: %+v\n%s", allowed, v.page)
	}
	v.press("sure", "typed", "cms-files", "allow_executable", "")
	if len(allowed) != 1 || allowed[0] != (backups.RestoreAllowance{Unknown: true}) {
		t.Fatalf("with one tick: %+v", allowed)
	}
	v.get("/admin/backups").press("files-b.tar.zst").press("sure", "typed", "cms-files")
	if len(allowed) != 2 || allowed[1] != (backups.RestoreAllowance{Unknown: true, Executable: true}) {
		t.Fatalf("with both: %+v", allowed)
	}
}
