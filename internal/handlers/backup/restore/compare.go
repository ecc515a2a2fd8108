package restore

import (
	"context"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

// compareRestored dumps what was restored into nothing and compares.
func (r *Restorer) compareRestored(ctx context.Context, q Request, m *manifest.Manifest, done *Result) error {
	if q.Backup.Engine != database.MySQL || m == nil || m.Dump == nil || m.Dump.Rows < 0 {
		return nil
	}
	is, err := dump.MySQL(ctx, r.targetDSN(q), dump.Options{Tables: q.Tables, Exclude: func(table string) bool {
		return !q.replaces(r, table)
	}}, func(dump.Part, string, []byte) error { return nil })
	if err != nil {
		return fmt.Errorf("comparing what was restored: %w", err)
	}
	restored := map[string]dump.Table{}
	for _, t := range is.Tables {
		restored[t.Name] = t
	}
	for _, w := range m.Dump.Tables {
		g, there := restored[w.Name]
		same := there && g.Rows == w.Rows && (g.Checksum == w.Checksum || !dump.SumsComparable(*m.Dump, is, w.Name))
		if !w.Empty && q.replaces(r, w.Name) && !same {
			done.Problems = append(done.Problems, fmt.Sprintf("the table %s has %d rows that are not the %d of the "+
				"backup: the site writes already, or the restore failed", w.Name, g.Rows, w.Rows))
		}
	}
	return nil
}
