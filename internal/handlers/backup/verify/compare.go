package verify

import (
	"context"
	"fmt"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

// compareArchive holds the archive's bytes against the manifest file and against
// what this database remembers, as an archive and its manifest file could be
// replaced together.
func (r *reading) compareArchive(ctx context.Context, m *archive.Meter, stated int64) {
	r.verification.Bytes = m.Size()
	sum := m.SHA256()
	if m.Size() != r.stored.Size || stated >= 0 && stated != m.Size() {
		r.problem("the archive has %d bytes, it was made with %d", m.Size(), r.stored.Size)
	}
	if sum != r.stored.SHA256 {
		r.problem("the archive's SHA-256 is %s, it was made with %s", sum, r.stored.SHA256)
	}
	recorded, err := r.config.Catalog.RecordedSum(ctx, r.stored.ID)
	if err != nil {
		r.unsure = fmt.Errorf("%w: what was recorded of it cannot be read: %w", manifest.ErrUnfinished, err)
	} else if recorded != "" && recorded != sum {
		r.problem("the archive is not the one that was made: its SHA-256 is %s, recorded is %s", sum, recorded)
	}
}

// compare holds what was read against the manifest.
func (r *reading) compare(ctx context.Context) error {
	m := r.manifest
	if r.header == nil || m == nil || r.last != manifest.LastEntry {
		r.problem("the archive has no header or does not end with its manifest")
		return nil
	}
	if r.header.ID != r.stored.ID || m.ID != r.stored.ID {
		r.problem("the archive is the backup %s, not %s", m.ID, r.stored.ID)
	}
	r.comparePieces(m)
	r.compareCount(m)
	if m.Dump == nil || m.DatabaseError != "" {
		return nil
	}
	r.verification.Tables, r.verification.Rows = len(m.Dump.Tables), m.Dump.Rows
	if r.tempDB != nil {
		return r.compareTempDB(ctx)
	}
	if m.Engine == database.MySQL {
		if err := r.parser.close(); err != nil {
			r.problem("%v", err)
		}
		if m.Dump.Rows >= 0 && r.parser.rows != m.Dump.Rows {
			r.problem("the SQL has %d rows, %d were dumped", r.parser.rows, m.Dump.Rows)
		}
	}
	return nil
}

// compareCount holds the number of files that were listed against that of the backup.
// Those in a repository that were not read are counted by their record.
func (r *reading) compareCount(m *manifest.Manifest) {
	packed := m.FileCount
	if r.stored.Repository != nil {
		packed = r.stored.FileCount
		if r.shared || r.stored.WithoutFiles {
			r.verification.Files = packed
		}
	}
	if r.verification.Files != packed {
		r.problem("%d files are listed, %d were packed", r.verification.Files, packed)
	}
}

// comparePieces holds the entries of the database against the manifest's.
func (r *reading) comparePieces(m *manifest.Manifest) {
	for _, piece := range m.Parts {
		if r.parts[piece.Name] != piece.SHA256 {
			r.problem("%s is missing or not as it was packed", piece.Name)
		}
		delete(r.parts, piece.Name)
	}
	for name := range r.parts {
		if m.DatabaseError == "" {
			r.problem("%s is not in the manifest", name)
		}
	}
}

// compareTempDB holds the restored database against what was dumped.
func (r *reading) compareTempDB(ctx context.Context) error {
	l := r.tempDB.PieceLoader
	r.tempDB.PieceLoader = nil
	if err := l.Close(); err != nil {
		r.problem("restoring: %v", err)
		return nil
	}
	r.progress(catalog.Step{Done: r.stored.Size, Total: r.stored.Size, Note: "comparing the restored database"})
	is, err := r.tempDB.Describe(ctx)
	if err != nil {
		return fmt.Errorf("looking at the restored database: %w", err)
	}
	was := r.manifest.Dump
	restored := map[string]dump.Table{}
	for _, t := range is.Tables {
		restored[t.Name] = t
	}
	for _, w := range was.Tables {
		g, there := restored[w.Name]
		switch {
		case !there:
			r.problem("the table %s was not restored", w.Name)
		case w.Empty || w.Rows < 0:
		case g.Rows != w.Rows:
			r.problem("the table %s has %d rows, %d were dumped", w.Name, g.Rows, w.Rows)
		case g.Checksum != w.Checksum && dump.SumsComparable(*was, is, w.Name):
			r.problem("the rows of the table %s are not those that were dumped", w.Name)
		}
	}
	r.compareSchema(*was, is)
	return nil
}

// compareSchema names what of the restored schema is not as it was dumped. What the
// two servers cannot be compared by is noted: it says nothing about the backup.
func (r *reading) compareSchema(was, is dump.Summary) {
	if r.manifest.Engine != database.MySQL {
		if was.Schema != "" && was.Rows >= 0 && is.Schema != was.Schema {
			r.problem("the schema is not the one that was dumped")
		}
		return
	}
	if limits := dump.Compared(was, is); limits != "" {
		r.note(limits)
	}
	if len(was.Objects) == 0 { // nothing to compare with
		return
	}
	if r.unprogrammed {
		was.Objects = slices.DeleteFunc(slices.Clone(was.Objects), func(o dump.Object) bool {
			return o.Kind != "table" && o.Kind != "sequence"
		})
		is.Objects = slices.DeleteFunc(is.Objects, func(o dump.Object) bool {
			return o.Kind != "table" && o.Kind != "sequence"
		})
	}
	for _, difference := range dump.Differences(was, is) {
		r.problem("the schema is not the one that was dumped: %s", difference)
	}
}
