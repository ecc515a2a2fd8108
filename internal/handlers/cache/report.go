package cache

import (
	"context"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// maxListed bounds how many things that could not be removed are named.
const maxListed = 50

// Report is the result of a cleaning job. With DryRun the figures are what
// would have been removed.
type Report struct {
	DryRun bool   `json:"dryRun"`
	Store  string `json:"store,omitempty"`

	Files   int64            `json:"files,omitempty"`
	Folders int64            `json:"folders,omitempty"`
	Bytes   int64            `json:"bytes,omitempty"`
	Keys    int64            `json:"keys,omitempty"`
	Rows    map[string]int64 `json:"rows,omitempty"` // by table
	// Untouched is how many entries a store holds that was to be emptied where
	// none of them was the site's.
	Untouched int64 `json:"untouched,omitempty"`
	// Rotated files were put aside to be compressed, Compressed ones were.
	Rotated    []string `json:"rotated,omitempty"`
	Compressed []string `json:"compressed,omitempty"`
	// Notes say what was done otherwise than one may have expected, and why.
	Notes []string `json:"notes,omitempty"`
	// NotRemoved names what could not be removed, with the reason; Failures
	// counts beyond the list's end.
	NotRemoved []string `json:"notRemoved,omitempty"`
	Failures   int64    `json:"failures,omitempty"`
	// Unfinished says that the time ran out; the next run goes on.
	Unfinished bool `json:"unfinished,omitempty"`
}

func (r *Report) failed(what string, err error) {
	r.Failures++
	if len(r.NotRemoved) < maxListed {
		r.NotRemoved = append(r.NotRemoved, fmt.Sprintf("%s: %v", what, err))
	}
}

func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

func (r *Report) rows(table string, n int64) {
	if r.Rows == nil {
		r.Rows = map[string]int64{}
	}
	r.Rows[table] += n
}

func (r *Report) file(size int64) { r.Files++; r.Bytes += size }

// finish leaves the report as the job's result and in its log.
func (r *Report) finish(ctx context.Context) error {
	for _, line := range append(r.Notes, r.NotRemoved...) {
		jobs.Logf(ctx, "%s", line)
	}
	return jobs.SetResult(ctx, r)
}
