package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// RestoreRequest says what is restored and where to.
type RestoreRequest struct {
	Backup Stored
	// Database restores all tables, or only Tables (MySQL, own dumper).
	Database bool
	Tables   []string
	// Files restores all files, or only those that fit Paths (patterns on
	// LABEL/PATH). Files that the backup does not have stay.
	Files bool
	Paths []string
	// IntoDSN is another database; "" is the CMS's. A SQLite backup needs it:
	// the path of a new file.
	IntoDSN string
	// IntoFolder is another folder, in which LABEL/PATH are made; "" are the
	// CMS's own.
	IntoFolder string
	// Confirm is the plan's Token, typed by a person.
	Confirm string
	// SkipSafety leaves out the backup that is made before.
	SkipSafety bool
}

// RestorePlan says what a restore would change.
type RestorePlan struct {
	Backup   string `json:"backup"`
	Database string `json:"database,omitempty"` // the one that would be written to
	// Tables that would be replaced or made; Kept are there and not in the backup.
	Tables []TableChange `json:"tables,omitempty"`
	Kept   []string      `json:"kept,omitempty"`
	// Files that would be made, overwritten, and that are as they were.
	NewFiles     int64 `json:"new_files"`
	ChangedFiles int64 `json:"changed_files"`
	SameFiles    int64 `json:"same_files"`
	// Examples are the first of the new and changed ones.
	Examples []string `json:"examples,omitempty"`
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

// Restored says what a restore did.
type Restored struct {
	Plan   RestorePlan `json:"plan"`
	Safety *Report     `json:"safety,omitempty"` // the backup made before
	Files  int64       `json:"files"`
	Tables int         `json:"tables"`
	// Problems are differences between what was restored and what was dumped.
	Problems []string `json:"problems,omitempty"`
}

// ErrUnconfirmed says that the typed confirmation is not the plan's.
var ErrUnconfirmed = errors.New("the restore is not confirmed")

// maxExamples bounds the names in a plan.
const maxExamples = 100

// Plan reads a backup through, changes nothing, and says what Restore would do.
func (h *Handler) Plan(ctx context.Context, q RestoreRequest, progress func(Step)) (RestorePlan, error) {
	plan := RestorePlan{Backup: q.Backup.ID}
	if err := h.checkRestore(q); err != nil {
		return plan, err
	}
	plan.Token = h.token(q)
	if q.Database {
		plan.Database = h.targetName(q)
		if err := h.planTables(ctx, q, &plan); err != nil {
			return plan, err
		}
	}
	if !q.Files {
		return plan, nil
	}
	target, err := h.fileTarget(q)
	if err != nil {
		return plan, err
	}
	defer target.close()
	err = h.readBackup(ctx, q.Backup, progress, func(e archive.Entry, content io.Reader) error {
		name, is := strings.CutPrefix(e.Name, filesFolder)
		if !is || !q.wants(name) {
			return nil
		}
		return plan.compareFile(ctx, target, name, e, content)
	})
	return plan, err
}

func (p *RestorePlan) compareFile(ctx context.Context, target fileTarget, name string, e archive.Entry, content io.Reader) error {
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

func (h *Handler) checkRestore(q RestoreRequest) error {
	switch {
	case !q.Database && !q.Files:
		return errors.New("nothing to restore: name the database, tables or files")
	case q.Database && !q.Backup.Database:
		return errors.New("this backup holds no database")
	case q.Files && !q.Backup.Files:
		return errors.New("this backup holds no files")
	case q.Backup.Status != Good:
		return fmt.Errorf("this backup is %s: %s. Take a good one, or download the archive and take from it what you need", q.Backup.Status, q.Backup.Error)
	case len(q.Tables) > 0 && q.Backup.Engine != mysqlEngine:
		return fmt.Errorf("single tables can be restored from MySQL backups only; restore into another database (IntoDSN) and copy from there")
	case q.Database && q.Backup.Engine == sqliteEngine && q.IntoDSN == "":
		return errors.New("a SQLite database is restored into a new file: name one, stop the site, and put it in the place of the old one")
	case q.Database && h.c.DSN == "" && q.IntoDSN == "":
		return errors.New("no DSN is configured to restore into")
	}
	return checkPatterns(q.Paths)
}

func (q RestoreRequest) wants(name string) bool {
	return len(q.Paths) == 0 || matchesAny(q.Paths, name)
}

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

// token is short enough to be typed, and another for another target or choice.
func (h *Handler) token(q RestoreRequest) string {
	name := "files"
	if q.Database {
		name = h.targetName(q)
	}
	data, _ := json.Marshal([]any{q.Backup.ID, q.Backup.SHA256, q.Database, q.Tables, q.Files, q.Paths, q.IntoDSN, q.IntoFolder}) // strings and bools always encode
	sum := sha256.Sum256(data)
	return name + "-" + hex.EncodeToString(sum[:3])
}

func (h *Handler) planTables(ctx context.Context, q RestoreRequest, plan *RestorePlan) error {
	now := map[string]int64{}
	if q.Backup.Engine == mysqlEngine {
		pool, _, err := dump.Connect(h.targetDSN(q))
		if err != nil {
			return err
		}
		defer pool.Close()
		rows, err := pool.QueryContext(ctx, "SELECT TABLE_NAME, COALESCE(TABLE_ROWS, 0) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE'")
		if err != nil {
			return fmt.Errorf("looking at the database to restore into: %w", err)
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			var n int64
			if err := rows.Scan(&name, &n); err != nil {
				return err
			}
			now[name] = n
		}
		if err := rows.Err(); err != nil {
			return err
		}
	}
	for _, t := range q.Backup.Tables {
		if len(q.Tables) > 0 && !slices.Contains(q.Tables, t.Name) {
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

// Restore brings back what the request names. It reads the whole backup and
// checks it before it touches anything, and makes a backup of what is there now.
func (h *Handler) Restore(ctx context.Context, q RestoreRequest, progress func(Step)) (Restored, error) {
	var done Restored
	if err := h.checkRestore(q); err != nil {
		return done, err
	}
	if q.Confirm != h.token(q) {
		return done, fmt.Errorf("%w: make a plan and type its token", ErrUnconfirmed)
	}
	if _, err := h.Verify(ctx, q.Backup, LevelParsed, progress); err != nil {
		return done, fmt.Errorf("nothing was changed: %w", err)
	}
	var err error
	if done.Plan, err = h.Plan(ctx, q, progress); err != nil {
		return done, fmt.Errorf("nothing was changed: %w", err)
	}
	if !q.SkipSafety && (q.IntoDSN == "" && q.Database || q.IntoFolder == "" && q.Files) {
		report, err := h.Create(ctx, Request{Name: "before restoring " + q.Backup.ID, Database: q.Database && q.IntoDSN == "", Files: q.Files && q.IntoFolder == ""}, progress)
		done.Safety = &report
		if err != nil {
			return done, fmt.Errorf("nothing was changed, as the backup before the restore failed: %w", err)
		}
	}
	if err := h.restore(ctx, q, progress, &done); err != nil {
		return done, fmt.Errorf("the restore stopped half way, repeat it or restore the backup made before: %w", err)
	}
	return done, nil
}

func (h *Handler) restore(ctx context.Context, q RestoreRequest, progress func(Step), done *Restored) error {
	var load loader
	if q.Database {
		var err error
		if load, err = h.openTarget(ctx, q); err != nil {
			return err
		}
	}
	target, err := h.fileTarget(q)
	if err != nil {
		return err
	}
	defer target.close()
	var manifest *Manifest
	err = h.readBackup(ctx, q.Backup, progress, func(e archive.Entry, content io.Reader) error {
		name, isFile := strings.CutPrefix(e.Name, filesFolder)
		switch {
		case e.Name == manifestName:
			return decodeEntry(content, &manifest)
		case isFile && q.Files && q.wants(name):
			store, key, err := target.of(name)
			if err != nil {
				return err
			}
			done.Files++
			return store.Put(ctx, key, content, storage.PutOptions{Public: true, ExpectedSize: e.Size})
		case load != nil && (strings.HasPrefix(e.Name, databaseFolder) || strings.HasPrefix(e.Name, routinesFolder)):
			data, err := readEntry(e, content)
			if err != nil {
				return err
			}
			part, table := partOf(e.Name)
			if q.IntoDSN == "" && strings.HasPrefix(table, ledgerPrefix) {
				return nil
			}
			return load.Load(part, table, data)
		}
		return nil
	})
	if load != nil {
		err = errors.Join(err, load.Close())
	}
	if err != nil || !q.Database {
		return err
	}
	done.Tables = len(done.Plan.Tables)
	return h.compareRestored(ctx, q, manifest, done)
}

// compareRestored dumps what was restored into nothing and compares.
func (h *Handler) compareRestored(ctx context.Context, q RestoreRequest, m *Manifest, done *Restored) error {
	if q.Backup.Engine != mysqlEngine || m == nil || m.Dump == nil || m.Dump.Rows < 0 {
		return nil
	}
	is, err := dump.MySQL(ctx, h.targetDSN(q), dump.Options{Tables: q.Tables}, func(dump.Part, string, []byte) error { return nil })
	if err != nil {
		return fmt.Errorf("comparing what was restored: %w", err)
	}
	restored := map[string]dump.Table{}
	for _, t := range is.Tables {
		restored[t.Name] = t
	}
	for _, w := range m.Dump.Tables {
		g, there := restored[w.Name]
		wanted := !w.Empty && (len(q.Tables) == 0 || slices.Contains(q.Tables, w.Name))
		if wanted && (!there || g.Rows != w.Rows || g.Checksum != w.Checksum) {
			done.Problems = append(done.Problems, fmt.Sprintf("the table %s has %d rows that are not the %d of the backup: the site writes already, or the restore failed", w.Name, g.Rows, w.Rows))
		}
	}
	return nil
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

// readBackup goes through a backup's entries.
func (h *Handler) readBackup(ctx context.Context, b Stored, progress func(Step), visit func(archive.Entry, io.Reader) error) error {
	_, format, encrypted, ok := archive.Detect(b.Archive)
	if !ok {
		return fmt.Errorf("%s is of no known format", b.Archive)
	}
	body, _, err := h.Download(ctx, b)
	if err != nil {
		return err
	}
	defer body.Close()
	if progress == nil {
		progress = func(Step) {}
	}
	m := &measured{ctx: ctx, from: body, sum: sha256.New(), tell: func(n int64) { progress(Step{n, b.Size, "reading " + b.ID}) }}
	if err := archive.Read(ctx, m, format, encrypted, h.c.Options.Identities, visit); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, m); err != nil {
		return err
	}
	// What was read here is held against its hash too: it may have been
	// replaced since it was checked.
	if hex.EncodeToString(m.sum.Sum(nil)) != b.SHA256 {
		return fmt.Errorf("%w: the archive changed meanwhile", ErrUnproven)
	}
	return nil
}
