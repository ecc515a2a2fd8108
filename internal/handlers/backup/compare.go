package backup

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
func (p *verifier) compareArchive(ctx context.Context, m *archive.Meter, stated int64) {
	p.verification.Bytes = m.Size()
	sum := m.SHA256()
	if m.Size() != p.stored.Size || stated >= 0 && stated != m.Size() {
		p.problem("the archive has %d bytes, it was made with %d", m.Size(), p.stored.Size)
	}
	if sum != p.stored.SHA256 {
		p.problem("the archive's SHA-256 is %s, it was made with %s", sum, p.stored.SHA256)
	}
	recorded, err := p.RecordedSum(ctx, p.stored.ID)
	if err != nil {
		p.unsure = fmt.Errorf("%w: what was recorded of it cannot be read: %w", manifest.ErrUnfinished, err)
	} else if recorded != "" && recorded != sum {
		p.problem("the archive is not the one that was made: its SHA-256 is %s, recorded is %s", sum, recorded)
	}
}

// compare holds what was read against the manifest.
func (p *verifier) compare(ctx context.Context) error {
	m := p.manifest
	if p.header == nil || m == nil || p.last != manifest.LastEntry {
		p.problem("the archive has no header or does not end with its manifest")
		return nil
	}
	if p.header.ID != p.stored.ID || m.ID != p.stored.ID {
		p.problem("the archive is the backup %s, not %s", m.ID, p.stored.ID)
	}
	for _, piece := range m.Parts {
		if p.parts[piece.Name] != piece.SHA256 {
			p.problem("%s is missing or not as it was packed", piece.Name)
		}
		delete(p.parts, piece.Name)
	}
	for name := range p.parts {
		if m.DatabaseError == "" {
			p.problem("%s is not in the manifest", name)
		}
	}
	if p.verification.Files != m.FileCount {
		p.problem("%d files are listed, %d were packed", p.verification.Files, m.FileCount)
	}
	if m.Dump == nil || m.DatabaseError != "" {
		return nil
	}
	p.verification.Tables, p.verification.Rows = len(m.Dump.Tables), m.Dump.Rows
	if p.tempDB != nil {
		return p.compareTempDB(ctx)
	}
	if m.Engine == database.MySQL {
		if err := p.parser.close(); err != nil {
			p.problem("%v", err)
		}
		if m.Dump.Rows >= 0 && p.parser.rows != m.Dump.Rows {
			p.problem("the SQL has %d rows, %d were dumped", p.parser.rows, m.Dump.Rows)
		}
	}
	return nil
}

// compareTempDB holds the restored database against what was dumped.
func (p *verifier) compareTempDB(ctx context.Context) error {
	l := p.tempDB.PieceLoader
	p.tempDB.PieceLoader = nil
	if err := l.Close(); err != nil {
		p.problem("restoring: %v", err)
		return nil
	}
	p.progress(catalog.Step{Done: p.stored.Size, Total: p.stored.Size, Note: "comparing the restored database"})
	is, err := p.tempDB.Describe(ctx)
	if err != nil {
		return fmt.Errorf("looking at the restored database: %w", err)
	}
	was := p.manifest.Dump
	restored := map[string]dump.Table{}
	for _, t := range is.Tables {
		restored[t.Name] = t
	}
	for _, w := range was.Tables {
		g, there := restored[w.Name]
		switch {
		case !there:
			p.problem("the table %s was not restored", w.Name)
		case w.Empty || w.Rows < 0:
		case g.Rows != w.Rows:
			p.problem("the table %s has %d rows, %d were dumped", w.Name, g.Rows, w.Rows)
		case g.Checksum != w.Checksum && dump.SumsComparable(*was, is, w.Name):
			p.problem("the rows of the table %s are not those that were dumped", w.Name)
		}
	}
	p.compareSchema(*was, is)
	return nil
}

// compareSchema names what of the restored schema is not as it was dumped. What the
// two servers cannot be compared by is noted: it says nothing about the backup.
func (p *verifier) compareSchema(was, is dump.Summary) {
	if p.manifest.Engine != database.MySQL {
		if was.Schema != "" && was.Rows >= 0 && is.Schema != was.Schema {
			p.problem("the schema is not the one that was dumped")
		}
		return
	}
	if limits := dump.Compared(was, is); limits != "" {
		p.note(limits)
	}
	if len(was.Objects) == 0 { // nothing to compare with
		return
	}
	if p.unprogrammed {
		was.Objects = slices.DeleteFunc(slices.Clone(was.Objects), func(o dump.Object) bool { return o.Kind != "table" && o.Kind != "sequence" })
		is.Objects = slices.DeleteFunc(is.Objects, func(o dump.Object) bool { return o.Kind != "table" && o.Kind != "sequence" })
	}
	for _, difference := range dump.Differences(was, is) {
		p.problem("the schema is not the one that was dumped: %s", difference)
	}
}
