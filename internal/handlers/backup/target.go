package backup

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/fileset"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/portable"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

func (h *Handler) targetDSN(q RestoreRequest) string {
	if q.IntoDSN != "" {
		return q.IntoDSN
	}
	return h.c.DSN
}

// targetName is the name of the database that would be written to.
func (h *Handler) targetName(q RestoreRequest) string {
	dsn := h.targetDSN(q)
	if c, err := mysql.ParseDSN(dsn); q.Backup.Engine == database.MySQL && err == nil {
		return c.DBName
	}
	if u, err := url.Parse(dsn); err == nil && u.Path != "" {
		return strings.TrimPrefix(u.Path, "/")
	}
	return q.Backup.Engine
}

func (h *Handler) openTarget(ctx context.Context, q RestoreRequest) (dump.PieceLoader, error) {
	switch q.Backup.Engine {
	case database.MySQL:
		target, err := portable.LookAt(ctx, h.targetDSN(q))
		if err != nil {
			return nil, err
		}
		l, err := dump.NewLoader(ctx, h.targetDSN(q), dump.LoadOptions{DropDefiners: !target.SetsDefiners(), Adapt: target.Adapt(q.Backup.Needs, q.Collations)})
		if err != nil {
			return nil, err
		}
		o := onlyTables{l, func(table string) bool { return q.replaces(h, table) }, len(q.Tables) > 0}
		l.Only(o.wants)
		return o, nil
	case database.PostgreSQL:
		return dump.NewPostgresLoader(ctx, h.targetDSN(q))
	case database.SQLite:
		return dump.NewFileLoader(q.IntoDSN)
	}
	return nil, fmt.Errorf("no way to restore a database of %s", q.Backup.Engine)
}

// serviceTable says whether a table is this service's own: its queue, its
// history, what it knows of backups.
func (h *Handler) serviceTable(table string) bool {
	return strings.HasPrefix(table, "cmsjobs_") || table == h.c.Site.Prefix+"jobs"
}

// replaces says whether a restore replaces a table. In the CMS's own database
// the service's tables stay as they are, unless they are named: it works with
// them at that moment, and work of then is not to be done again.
func (q RestoreRequest) replaces(h *Handler, table string) bool {
	if len(q.Tables) > 0 {
		return slices.Contains(q.Tables, table)
	}
	return q.IntoDSN != "" || !h.serviceTable(table)
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
	triggerOn = regexp.MustCompile("(?is)^CREATE\\s.*?\\bTRIGGER\\b.*?\\bON\\s+(?:`(?:[^`]|``)*`\\.|\\w+\\.)?(`(?:[^`]|``)*`|\\w+)\\s+FOR\\s+EACH\\s")
	// statementOf finds the table of a statement as mysqldump and we write it.
	statementOf = regexp.MustCompile("^(?:/\\*!\\d+ )?(?:DROP TABLE IF EXISTS|CREATE TABLE|INSERT INTO|REPLACE INTO|ALTER TABLE) `((?:[^`]|``)*)`")
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

func (h *Handler) fileTarget(q RestoreRequest) (fileTarget, error) {
	if !q.Files || q.IntoFolder == "" {
		return fileTarget{sets: h.c.Files}, nil
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
