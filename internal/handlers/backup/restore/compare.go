package restore

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

// compareRestored dumps what was restored into nothing and says how it differs from
// what was saved. staged are the names under which the tables are, by their later
// names; nil where they have those.
func (r *Restorer) compareRestored(ctx context.Context, q Request, m *manifest.Manifest, staged map[string]string) (
	problems []string, err error) {
	if q.Backup.Engine != database.MySQL || m == nil || m.Dump == nil || m.Dump.Rows < 0 || staged != nil &&
		len(staged) == 0 {
		return nil, nil
	}
	options := dump.Options{Tables: q.Tables, Exclude: func(table string) bool { return !q.replaces(r, table) }}
	if staged != nil {
		options = dump.Options{Tables: slices.Collect(maps.Values(staged))}
	}
	is, err := dump.MySQL(ctx, r.targetDSN(q), options, func(dump.Part, string, []byte) error { return nil })
	if err != nil {
		return nil, fmt.Errorf("comparing what was restored: %w", err)
	}
	restored := map[string]dump.Table{}
	for _, t := range is.Tables {
		restored[t.Name] = t
	}
	for _, w := range m.Dump.Tables {
		if w.Empty || !q.replaces(r, w.Name) {
			continue
		}
		g, there := restoredAs(restored, staged, w)
		if !there || !sameRows(w, g, dump.SumsComparable(*m.Dump, is, w.Name)) {
			problems = append(problems, fmt.Sprintf("the table %s has %d rows that are not the %d of the backup",
				w.Name,
				g.Rows, w.Rows))
		}
	}
	return problems, nil
}

// restoredAs finds what a table of the backup became.
func restoredAs(restored map[string]dump.Table, staged map[string]string, was dump.Table) (is dump.Table, there bool) {
	if staged == nil {
		is, there = restored[was.Name]
		return is, there
	}
	is, there = restored[staged[was.Name]]
	return is, there || !dump.HoldsRows(was.Engine) // that is made after the exchange, and has no rows
}

// sameRows compares two tables by their number of rows and, where sums says that it
// means something, by their checksums.
func sameRows(was, is dump.Table, sums bool) bool {
	return is.Rows == was.Rows && (is.Checksum == was.Checksum || !sums)
}
