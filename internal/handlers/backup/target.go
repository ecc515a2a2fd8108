package backup

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/storage"
	"github.com/go-sql-driver/mysql"
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
	if c, err := mysql.ParseDSN(dsn); q.Backup.Engine == mysqlEngine && err == nil {
		return c.DBName
	}
	if u, err := url.Parse(dsn); err == nil && u.Path != "" {
		return strings.TrimPrefix(u.Path, "/")
	}
	return q.Backup.Engine
}

func (h *Handler) openTarget(ctx context.Context, q RestoreRequest) (loader, error) {
	switch q.Backup.Engine {
	case mysqlEngine:
		l, err := dump.NewLoader(ctx, h.targetDSN(q), dump.LoadOptions{})
		if err == nil && len(q.Tables) > 0 {
			o := onlyTables{l, q.Tables}
			l.Only(o.wants)
			return o, nil
		}
		return l, err
	case postgresEngine:
		return dump.NewPostgresLoader(ctx, h.targetDSN(q))
	case sqliteEngine:
		return newFileLoader(q.IntoDSN)
	}
	return nil, fmt.Errorf("no way to restore a database of %s", q.Backup.Engine)
}

// onlyTables lets some tables through, and the triggers on them, which go
// when a table is replaced.
type onlyTables struct {
	*dump.Loader
	tables []string
}

var triggerOn = regexp.MustCompile("(?is)^CREATE\\s.*?\\bTRIGGER\\b.*?\\bON\\s+(?:`(?:[^`]|``)*`\\.|\\w+\\.)?(`(?:[^`]|``)*`|\\w+)\\s+FOR\\s+EACH\\s")

func (o onlyTables) Load(part dump.Part, table string, piece []byte) error {
	if part == dump.Main && !slices.Contains(o.tables, table) {
		return nil
	}
	return o.Loader.Load(part, table, piece)
}

// wants chooses among the statements of the second file.
func (o onlyTables) wants(part dump.Part, statement []byte) bool {
	if part == dump.Main || strings.HasPrefix(string(statement), "SET ") {
		return true
	}
	m := triggerOn.FindSubmatch(statement)
	return m != nil && slices.Contains(o.tables, strings.ReplaceAll(strings.Trim(string(m[1]), "`"), "``", "`"))
}

// fileTarget is where files are restored to.
type fileTarget struct {
	folder *storage.Local
	sets   []FileSet
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
