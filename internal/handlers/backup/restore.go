package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/fileset"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// RestoreRequest says what is restored and where to.
type RestoreRequest struct {
	Backup catalog.Stored
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
	// Collations become others, where the server knows the dump's own or not.
	Collations map[string]string
	// Confirm is the plan's Token, typed by a person.
	Confirm string
	// TrustUnknown restores a backup that this installation never made, or that
	// was altered.
	TrustUnknown bool
	// AllowExecutable restores files that a web server could execute too.
	AllowExecutable bool
	// AllowFailed restores a backup whose newest verification failed, if its archive is
	// still the one that was made.
	AllowFailed bool
	// SkipSafety leaves out the backup that is made before.
	SkipSafety bool

	// Begin is called when nothing else restores or backs up, before anything
	// is done; its error ends the restore. nil is nothing to ask.
	Begin func(context.Context) error
}

// Restored says what a restore did.
type Restored struct {
	Plan   RestorePlan     `json:"plan"`
	Safety *catalog.Report `json:"safety,omitempty"` // the backup made before
	Files  int64           `json:"files"`
	Tables int             `json:"tables"`
	// Executable is how many files were left out, as a web server could execute them.
	Executable int64 `json:"executable,omitempty"`
	// Problems are differences between what was restored and what was dumped.
	Problems []string `json:"problems,omitempty"`
}

// ErrUnconfirmed says that the typed confirmation is not the plan's.
var ErrUnconfirmed = errors.New("the restore is not confirmed")

// ErrUnfit says that the database to restore into cannot take the backup.
var ErrUnfit = errors.New("the database to restore into cannot take this backup")

func (h *Handler) checkRestore(q RestoreRequest) error {
	switch {
	case !q.Database && !q.Files:
		return errors.New("nothing to restore: name the database, tables or files")
	case q.Database && !q.Backup.Database:
		return errors.New("this backup holds no database")
	case q.Files && !q.Backup.Files:
		return errors.New("this backup holds no files")
	case q.Backup.Status == manifest.Failed && q.Backup.Verification != nil && !q.AllowFailed:
		return fmt.Errorf("this backup is failed: %s. Take a complete one (cmsjobs backup list), or restore it all the same with --allow-failed", q.Backup.Reason())
	case q.Backup.Status != manifest.Complete && !(q.Backup.Status == manifest.Failed && q.Backup.Made == manifest.Complete):
		return fmt.Errorf("this backup is %s: %s. Take a complete one, or download the archive and take from it what you need", q.Backup.Status, q.Backup.Reason())
	case len(q.Tables) > 0 && q.Backup.Engine != database.MySQL:
		return fmt.Errorf("single tables can be restored from MySQL backups only; restore into another database (IntoDSN) and copy from there")
	case q.Database && q.Backup.Engine == database.SQLite && q.IntoDSN == "":
		return errors.New("a SQLite database is restored into a new file: name one, stop the site, and put it in the place of the old one")
	case q.Database && h.c.DSN == "" && q.IntoDSN == "":
		return errors.New("no DSN is configured to restore into")
	}
	return fileset.CheckPatterns(q.Paths)
}

func (q RestoreRequest) wants(name string) bool {
	return len(q.Paths) == 0 || fileset.MatchesAny(q.Paths, name)
}

// Restore brings back what the request names. It reads the whole backup and
// checks it before it touches anything, and makes a backup of what is there now.
func (h *Handler) Restore(ctx context.Context, q RestoreRequest, progress func(catalog.Step)) (Restored, error) {
	var done Restored
	if err := h.checkRestore(q); err != nil {
		return done, err
	}
	if q.Confirm != h.Token(q) {
		return done, fmt.Errorf("%w: make a plan and type its token", ErrUnconfirmed)
	}
	ctx, unlock, err := h.locks.Exclusive(ctx, "the restore of "+q.Backup.ID) // a backup meanwhile would be of neither state
	if err != nil {
		return done, err
	}
	defer unlock()
	if q.Begin != nil { // the confirmation works once
		if err := q.Begin(ctx); err != nil {
			return done, err
		}
	}
	defer h.c.Working()()
	if q.Backup.Origin, err = h.OriginOf(ctx, q.Backup.File); err != nil {
		return done, err
	}
	if text := q.Backup.Untrusted(); text != "" && !q.TrustUnknown {
		return done, fmt.Errorf("nothing was changed: %w: %s. If you know where it comes from, restore it with --trust-unknown", ErrUntrusted, text)
	}
	staged, remove, err := h.stage(ctx, q.Backup, progress)
	if err != nil {
		return done, fmt.Errorf("nothing was changed: %w", err)
	}
	defer remove()
	q.Backup = staged
	if err := h.prepare(ctx, q, progress, &done); err != nil {
		return done, fmt.Errorf("nothing was changed: %w", err)
	}
	finish, err := h.beginRestore(ctx, q)
	if err != nil {
		return done, fmt.Errorf("nothing was changed: %w", err)
	}
	if err := h.restore(ctx, q, progress, &done); err != nil {
		return done, fmt.Errorf("the restore stopped half way, repeat it or restore the backup made before: %w", err)
	}
	return done, finish()
}

// prepare does all that can fail before anything is touched.
func (h *Handler) prepare(ctx context.Context, q RestoreRequest, progress func(catalog.Step), done *Restored) (err error) {
	if verification, err := h.Verify(ctx, q.Backup, manifest.LevelParsed, progress); err != nil {
		if !q.AllowFailed || !errors.Is(err, manifest.ErrUnverified) {
			return err
		}
		done.Problems = append(done.Problems, verification.Problems...)
	}
	if done.Plan, err = h.Plan(ctx, q, progress); err != nil {
		return err
	}
	if len(done.Plan.Refused) > 0 {
		return fmt.Errorf("%w: %s", ErrUnfit, strings.Join(done.Plan.Refused, "; "))
	}
	if err := h.rehearse(ctx, q, &done.Plan, true, progress); err != nil {
		return fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	safety := Request{Name: "before restoring " + q.Backup.ID, Database: q.Database && q.IntoDSN == "", Files: q.Files && q.IntoFolder == "", Source: SourceRestore, safety: true}
	if q.SkipSafety || !safety.Database && !safety.Files {
		return nil
	}
	report, err := h.create(ctx, h.newRun(safety, progress))
	done.Safety = &report
	if err != nil {
		return fmt.Errorf("the backup before the restore failed: %w", err)
	}
	return nil
}

func (h *Handler) restore(ctx context.Context, q RestoreRequest, progress func(catalog.Step), done *Restored) error {
	var load dump.PieceLoader
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
	var read *manifest.Manifest
	err = h.Read(ctx, q.Backup, progress, func(e archive.Entry, content io.Reader) error {
		name, isFile := strings.CutPrefix(e.Name, manifest.FilesFolder)
		switch {
		case e.Name == manifest.LastEntry:
			return manifest.DecodeEntry(content, &read)
		case isFile && q.Files && q.wants(name) && !q.AllowExecutable && executable(name):
			done.Executable++
			return nil
		case isFile && q.Files && q.wants(name):
			store, key, err := target.of(name)
			if err != nil {
				return err
			}
			done.Files++
			return store.Put(ctx, key, content, storage.PutOptions{Public: true, ExpectedSize: e.Size})
		case load != nil && (strings.HasPrefix(e.Name, manifest.DatabaseFolder) || strings.HasPrefix(e.Name, manifest.RoutinesFolder)):
			data, err := manifest.ReadEntry(e, content)
			if err != nil {
				return err
			}
			part, table := manifest.PartOf(e.Name)
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
	if err := h.carryKey(ctx, q); err != nil {
		h.c.Logger.WarnContext(ctx, "signing key of backups not written to the restored database; a new one will be made: add the old one to backup.trusted_keys",
			"event", "backup.key_not_restored", "error", err)
	}
	return h.compareRestored(ctx, q, read, done)
}

// compareRestored dumps what was restored into nothing and compares.
func (h *Handler) compareRestored(ctx context.Context, q RestoreRequest, m *manifest.Manifest, done *Restored) error {
	if q.Backup.Engine != database.MySQL || m == nil || m.Dump == nil || m.Dump.Rows < 0 {
		return nil
	}
	is, err := dump.MySQL(ctx, h.targetDSN(q), dump.Options{Tables: q.Tables, Exclude: func(table string) bool { return !q.replaces(h, table) }}, func(dump.Part, string, []byte) error { return nil })
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
		if !w.Empty && q.replaces(h, w.Name) && !same {
			done.Problems = append(done.Problems, fmt.Sprintf("the table %s has %d rows that are not the %d of the backup: the site writes already, or the restore failed", w.Name, g.Rows, w.Rows))
		}
	}
	return nil
}
