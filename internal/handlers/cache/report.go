package cache

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
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

// Summary implements jobs.Summarizer.
func (r Report) Summary() (s phrase.Summary) {
	rows := r.sumOfRows()
	switch {
	case r.Files+r.Folders+r.Keys+rows == 0 && len(r.Rotated)+len(r.Compressed) == 0:
		s.Say("There was nothing to delete.")
	case r.DryRun:
		s.Say("A dry run: nothing was deleted.")
		phrase.Count(&s, r.Files, "%s {file|files}, %s, would be deleted.", phrase.Size(r.Bytes))
		phrase.Count(&s, r.Folders, "%s {folder|folders} would be deleted.")
		phrase.Count(&s, r.Keys, "%s cache {key|keys} would be deleted.")
		phrase.Count(&s, rows, "%s {row|rows} would be deleted.")
	default:
		phrase.Count(&s, r.Files, "Deleted %s {file|files}, %s.", phrase.Size(r.Bytes))
		phrase.Count(&s, r.Folders, "Deleted %s {folder|folders}.")
		phrase.Count(&s, r.Keys, "Deleted %s cache {key|keys}.")
		phrase.Count(&s, rows, "Deleted %s {row|rows}.")
		phrase.Count(&s, len(r.Rotated), "Rotated %s log {file|files}.")
		phrase.Count(&s, len(r.Compressed), "Compressed %s log {file|files}.")
	}
	phrase.Count(&s, r.Untouched, "%s {entry|entries} of the store stayed: none is the site's.")
	phrase.Count(&s, r.Failures, "%s could not be deleted.")
	if r.Unfinished {
		s.Say("The time ran out; the next run goes on.")
	}
	phrase.List(&s, phrase.Columns("Table", "Rows"), slices.Sorted(maps.Keys(r.Rows)), func(table string) []any {
		return []any{table, r.Rows[table]}
	})
	phrase.Lines(&s, phrase.Columns("Could not be deleted"), r.NotRemoved)
	phrase.Lines(&s, phrase.Columns("Note"), r.Notes)
	return s
}

func (r Report) sumOfRows() (sum int64) {
	for _, n := range r.Rows {
		sum += n
	}
	return sum
}

// Maintained is the result of maintenance.cleanup.
type Maintained struct {
	Enqueued []string `json:"enqueued"` // the types
	DryRun   bool     `json:"dryRun"`
}

// Summary implements jobs.Summarizer.
func (m Maintained) Summary() (s phrase.Summary) {
	s.Say("Enqueued %s {job|jobs}: %s.", len(m.Enqueued), strings.Join(m.Enqueued, ", "))
	return s
}
