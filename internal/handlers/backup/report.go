package backup

import (
	"context"
	"errors"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

// end writes down what became of the run and tells who wants to know.
func (r *run) end(ctx context.Context, err error) (catalog.Report, error) {
	ctx = context.WithoutCancel(ctx)
	p := &r.report
	p.Finished = r.c.Now().UTC()
	p.Files, p.FileBytes, p.DatabaseError = r.manifest.FileCount, r.manifest.FileBytes, r.manifest.DatabaseError
	if d := r.manifest.Dump; d != nil {
		p.Tables, p.Rows = len(d.Tables), d.Rows
	}
	if p.Status == manifest.Running {
		p.Status = manifest.Failed
	}
	if r.dropped > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("(%d more warnings were dropped)", r.dropped))
	}
	if err != nil {
		p.Error = err.Error()
		err = fmt.Errorf("backup %s: %w", p.ID, err)
	}
	err = errors.Join(err, r.Record(ctx, *p))
	if r.c.Finished != nil && (err != nil || r.c.Options.NotifySuccess) {
		r.c.Finished(ctx, *p)
	}
	return *p, err
}

func (r *run) warn(format string, args ...any) {
	if len(r.report.Warnings) >= maxWarnings {
		r.dropped++
		return
	}
	r.report.Warnings = append(r.report.Warnings, fmt.Sprintf(format, args...))
}

// maxWarnings bounds what a report keeps; the rest is counted.
const maxWarnings = 200
