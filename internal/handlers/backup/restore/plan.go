package restore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Plan says what a restore would change.
type Plan struct {
	Backup   string `json:"backup"`
	Database string `json:"database,omitempty"` // the one that would be written to
	// Tables that would be replaced or made; Kept are there and not in the backup.
	Tables []TableChange `json:"tables,omitempty"`
	Kept   []string      `json:"kept,omitempty"`
	// Files that would be made, overwritten, and that are as they were.
	NewFiles     int64 `json:"new_files"`
	ChangedFiles int64 `json:"changed_files"`
	SameFiles    int64 `json:"same_files"`
	// Unread says that the files were not compared: then each counts as overwritten.
	Unread bool `json:"unread,omitempty"`
	// Executable are files that a web server could execute. They are restored
	// only with AllowExecutable; ExecutableNames are the first of them.
	Executable      int64    `json:"executable,omitempty"`
	ExecutableNames []string `json:"executable_names,omitempty"`
	// Untrusted says what is wrong with the backup's origin; "" when nothing is.
	// Then it is restored only with TrustUnknown.
	Untrusted string `json:"untrusted,omitempty"`
	// Examples are the first of the new and changed ones.
	Examples []string `json:"examples,omitempty"`
	// Warnings say what will not be as it was, as the server is another one.
	Warnings []string `json:"warnings,omitempty"`
	// Refused says what the server cannot take: then nothing is restored.
	Refused []string `json:"refused,omitempty"`
	// Token is what a person types to confirm.
	Token string `json:"token"`
}

// TableChange is one table that a restore replaces.
type TableChange struct {
	Name string `json:"name"`
	// RowsNow is −1 when the table is not there.
	RowsNow    int64 `json:"rows_now"`
	RowsBackup int64 `json:"rows_backup"` // −1 when unknown
}

// maxExamples bounds the names in a plan.
const maxExamples = 100

// Outline says what Restore would do as far as that is known without reading
// the archive: every file of the backup counts as one that is overwritten.
func (r *Restorer) Outline(ctx context.Context, q Request) (Plan, error) {
	plan := Plan{Backup: q.Backup.ID}
	if err := r.check(q); err != nil {
		return plan, err
	}
	plan.Token, plan.Untrusted = r.Token(q), q.Backup.Untrusted()
	if q.Files {
		plan.ChangedFiles, plan.Unread = q.Backup.FileCount, true
	}
	if !q.Database {
		return plan, nil
	}
	plan.Database = r.targetName(q)
	if err := r.planTables(ctx, q, &plan); err != nil {
		return plan, err
	}
	var err error
	plan.Warnings, plan.Refused, err = r.fit(ctx, q)
	return plan, err
}

// Plan reads a backup through, changes nothing, and says what Restore would do.
func (r *Restorer) Plan(ctx context.Context, q Request, progress func(catalog.Step)) (Plan, error) {
	plan, err := r.Outline(ctx, q)
	if err != nil {
		return plan, err
	}
	if len(plan.Refused) == 0 {
		if err := r.rehearse(ctx, q, &plan, false, func(catalog.Step) {}); err != nil {
			plan.Refused = append(plan.Refused, err.Error())
		}
	}
	if !q.Files {
		return plan, nil
	}
	defer r.config.Working()()
	plan.ChangedFiles, plan.Unread = 0, false
	target, err := r.fileTarget(q)
	if err != nil {
		return plan, err
	}
	defer target.close()
	err = r.config.Catalog.Read(ctx, q.Backup, progress, func(e archive.Entry, content io.Reader) error {
		name, is := strings.CutPrefix(e.Name, manifest.FilesFolder)
		if !is || !q.wants(name) {
			return nil
		}
		if executable(name) {
			plan.Executable++
			if len(plan.ExecutableNames) < maxExamples {
				plan.ExecutableNames = append(plan.ExecutableNames, name)
			}
			if !q.AllowExecutable {
				return nil
			}
		}
		return plan.compareFile(ctx, target, name, content)
	})
	return plan, err
}

func (p *Plan) compareFile(ctx context.Context, target fileTarget, name string, content io.Reader) error {
	store, key, err := target.of(name)
	if err != nil {
		return err
	}
	there, _, err := store.Open(ctx, key)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		p.NewFiles++
	case err != nil:
		return err
	default:
		defer there.Close()
		same, err := sameContent(there, content)
		if err != nil {
			return err
		}
		if same {
			p.SameFiles++
			return nil
		}
		p.ChangedFiles++
	}
	if len(p.Examples) < maxExamples {
		p.Examples = append(p.Examples, name)
	}
	return nil
}

func sameContent(a, b io.Reader) (bool, error) {
	x, y := sha256.New(), sha256.New()
	if _, err := io.Copy(x, a); err != nil {
		return false, err
	}
	if _, err := io.Copy(y, b); err != nil {
		return false, err
	}
	return string(x.Sum(nil)) == string(y.Sum(nil)), nil
}

// rowsNow are the tables that are there, with about as many rows as they have.
func (r *Restorer) rowsNow(ctx context.Context, q Request) (map[string]int64, error) {
	if q.Backup.Engine == database.SQLite && q.inPlaceDatabase() {
		return dump.SQLiteTables(ctx, r.config.DSN)
	}
	now := map[string]int64{}
	if q.Backup.Engine != database.MySQL {
		return now, nil
	}
	pool, _, err := dump.Connect(r.targetDSN(q))
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	var tables []cms.TableSize
	if err := database.SelectStatistics(ctx, sqlx.NewDb(pool, "mysql"), &tables,
		"SELECT TABLE_NAME AS name, CAST(COALESCE(TABLE_ROWS, 0) AS SIGNED) AS row_count"+
			" FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() "+
			"AND TABLE_TYPE = 'BASE TABLE'"); err != nil {
		return nil, err
	}
	for _, t := range tables {
		now[t.Name] = t.Rows
	}
	return now, nil
}

func (r *Restorer) planTables(ctx context.Context, q Request, plan *Plan) error {
	now, err := r.rowsNow(ctx, q)
	if err != nil {
		return fmt.Errorf("looking at the database to restore into: %w", err)
	}
	for _, t := range q.Backup.Tables {
		_, there := now[t.Name]
		if !q.replaces(r, t.Name) && (there || len(q.Tables) > 0) {
			continue
		}
		change := TableChange{Name: t.Name, RowsNow: -1, RowsBackup: t.Rows}
		if n, there := now[t.Name]; there {
			change.RowsNow = n
		}
		delete(now, t.Name)
		plan.Tables = append(plan.Tables, change)
	}
	for _, name := range q.Tables {
		if !slices.ContainsFunc(plan.Tables, func(c TableChange) bool { return c.Name == name }) {
			return fmt.Errorf("the backup has no table %s", name)
		}
	}
	if len(q.Tables) == 0 {
		for name := range now {
			plan.Kept = append(plan.Kept, name)
		}
		slices.Sort(plan.Kept)
	}
	return nil
}
