package restore

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/fileset"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/portable"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

func (r *Restorer) openTarget(ctx context.Context, q Request) (dump.PieceLoader, error) {
	switch q.Backup.Engine {
	case database.MySQL:
		target, err := portable.LookAt(ctx, r.targetDSN(q))
		if err != nil {
			return nil, err
		}
		return r.mysqlLoader(ctx, q, dump.LoadOptions{DropDefiners: !target.SetsDefiners(),
			Adapt: target.Adapt(q.Backup.Needs, q.Collations)})
	case database.PostgreSQL:
		return dump.NewPostgresLoader(ctx, r.targetDSN(q), "")
	case database.SQLite:
		return dump.NewFileLoader(q.IntoDSN)
	}
	return nil, fmt.Errorf("no way to restore a database of %s", q.Backup.Engine)
}

// mysqlLoader loads the tables that a request replaces.
func (r *Restorer) mysqlLoader(ctx context.Context, q Request, options dump.LoadOptions) (dump.PieceLoader, error) {
	l, err := dump.NewLoader(ctx, r.targetDSN(q), options)
	if err != nil {
		return nil, err
	}
	o := onlyTables{l, func(table string) bool { return q.replaces(r, table) }, len(q.Tables) > 0}
	l.Only(o.wants)
	return o, nil
}

// onlyTables lets the tables through that a restore replaces, and the triggers
// on them, which go when a table is replaced.
type onlyTables struct {
	*dump.Loader
	wanted func(table string) bool
	// single says that routines and events stay as they are.
	single bool
}

var (
	triggerOn = regexp.MustCompile(
		"(?is)^CREATE\\s.*?\\bTRIGGER\\b.*?\\bON\\s+(?:`(?:[^`]|``)*`\\.|\\w+\\.)?(`(?:[^`]|``)*`|\\w+)\\s+FOR\\s+EACH\\s")
	// statementOf finds the table of a statement as mysqldump and we write it.
	statementOf = regexp.MustCompile("^(?:/\\*!\\d+ )?(?:DROP TABLE IF EXISTS|CREATE TABLE|INSERT INTO|REPLACE " +
		"INTO|ALTER TABLE) `((?:[^`]|``)*)`")
)

// Load leaves out pieces of tables that stay.
func (o onlyTables) Load(part dump.Part, table string, piece []byte) error {
	if part == dump.Main && (table != "" || o.single) && !o.wanted(table) {
		return nil
	}
	return o.Loader.Load(part, table, piece)
}

// wants chooses among statements whose piece names no table.
func (o onlyTables) wants(part dump.Part, statement []byte) bool {
	if m := triggerOn.FindSubmatch(statement); part == dump.Extra && m != nil {
		return o.wanted(unquoted(strings.Trim(string(m[1]), "`")))
	}
	if part == dump.Extra && o.single {
		return strings.HasPrefix(string(statement), "SET ")
	}
	m := statementOf.FindSubmatch(statement[:min(len(statement), 512)])
	return m == nil || o.wanted(unquoted(string(m[1])))
}

// unquoted is a name without its doubled quotes.
func unquoted(name string) string { return strings.ReplaceAll(name, "``", "`") }

// fileTarget is where files are restored to.
type fileTarget struct {
	folder *storage.Local
	sets   []fileset.Set
}

func (r *Restorer) fileTarget(q Request) (fileTarget, error) {
	if !q.Files || q.IntoFolder == "" {
		return fileTarget{sets: r.config.Files}, nil
	}
	folder, err := storage.NewLocal(q.IntoFolder, storage.LocalOptions{Create: true})
	return fileTarget{folder: folder}, err
}

func (t fileTarget) close() {
	if t.folder != nil {
		t.folder.Close()
	}
}

func (t fileTarget) of(name string) (storage.Store, string, error) {
	if t.folder != nil {
		return t.folder, name, nil
	}
	for _, set := range t.sets {
		if key, is := strings.CutPrefix(name, set.Label+"/"); is {
			return set.Store, key, nil
		}
	}
	return nil, "", fmt.Errorf("%s belongs to no configured folder: restore into another folder", name)
}
