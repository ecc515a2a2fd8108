package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Result says what a restore did.
type Result struct {
	Plan   Plan            `json:"plan"`
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

// Restore brings back what the request names. It reads the whole backup and
// checks it before it touches anything, and makes a backup of what is there now.
func (r *Restorer) Restore(ctx context.Context, q Request, progress func(catalog.Step)) (Result, error) {
	var done Result
	if err := r.check(q); err != nil {
		return done, err
	}
	if q.Confirm != r.Token(q) {
		return done, fmt.Errorf("%w: make a plan and type its token", ErrUnconfirmed)
	}
	// a backup meanwhile would be of neither state
	ctx, unlock, err := r.config.Locks.Exclusive(ctx, "the restore of "+q.Backup.ID)
	if err != nil {
		return done, err
	}
	defer unlock()
	if err := r.settleEarlier(ctx); err != nil {
		return done, fmt.Errorf("nothing was changed: %w", err)
	}
	if q.Begin != nil { // the confirmation works once
		if err := q.Begin(ctx); err != nil {
			return done, err
		}
	}
	defer r.config.Working()()
	if err := r.judgeOrigin(ctx, &q); err != nil {
		return done, fmt.Errorf("nothing was changed: %w", err)
	}
	staged, remove, err := r.stage(ctx, q.Backup, progress)
	if err != nil {
		return done, fmt.Errorf("nothing was changed: %w", err)
	}
	defer remove()
	q.Backup = staged
	if err := r.prepare(ctx, q, progress, &done); err != nil {
		return done, fmt.Errorf("nothing was changed: %w", err)
	}
	if !q.inPlaceDatabase() && !q.inPlaceFiles() {
		if err := r.restoreElsewhere(ctx, q, progress, &done); err != nil {
			return done, fmt.Errorf("the restore stopped half way, repeat it: %w", err)
		}
		return done, nil
	}
	err = r.restoreSite(ctx, q, progress, &done)
	if err == nil && q.Database {
		r.keepKey(ctx, q)
	}
	return done, err
}

// settleEarlier brings a restore that died to its end.
func (r *Restorer) settleEarlier(ctx context.Context) error {
	earlier, err := r.settle(ctx, Settle)
	r.tell(ctx, earlier)
	return err
}

// judgeOrigin refuses a backup of unknown origin, unless the request allows it.
func (r *Restorer) judgeOrigin(ctx context.Context, q *Request) (err error) {
	if q.Backup.Origin, err = r.config.Catalog.OriginOf(ctx, q.Backup.File); err != nil {
		return err
	}
	if text := q.Backup.Untrusted(); text != "" && !q.TrustUnknown {
		return fmt.Errorf("%w: %s. If you know where it comes from, restore it with --trust-unknown", ErrUntrusted,
			text)
	}
	return nil
}

// prepare does all that can fail before anything is touched.
func (r *Restorer) prepare(ctx context.Context, q Request, progress func(catalog.Step), done *Result) (err error) {
	b := q.Backup
	b.WithoutFiles = !q.Files
	if verification, err := r.config.Verifier.Verify(ctx, b, manifest.LevelParsed, progress); err != nil {
		if !q.AllowFailed || !errors.Is(err, manifest.ErrUnverified) {
			return err
		}
		done.Problems = append(done.Problems, verification.Problems...)
	}
	if done.Plan, err = r.Plan(ctx, q, progress); err != nil {
		return err
	}
	if len(done.Plan.Refused) > 0 {
		return fmt.Errorf("%w: %s", ErrUnfit, strings.Join(done.Plan.Refused, "; "))
	}
	if err := r.rehearse(ctx, q, &done.Plan, true, progress); err != nil {
		return fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	if q.SkipSafety || !q.inPlaceDatabase() && !q.inPlaceFiles() {
		return nil
	}
	report, err := r.config.Safety(ctx, "before restoring "+q.Backup.ID, q.inPlaceDatabase(), q.inPlaceFiles(),
		progress)
	done.Safety = &report
	if err != nil {
		return fmt.Errorf("the backup before the restore failed: %w", err)
	}
	return nil
}

// restoreElsewhere writes into another database and another folder as it reads.
func (r *Restorer) restoreElsewhere(ctx context.Context, q Request, progress func(catalog.Step), done *Result) (
	err error) {
	w := writer{request: q, done: done}
	if q.Database {
		if w.load, err = r.openTarget(ctx, q); err != nil {
			return err
		}
	}
	if w.files, err = r.fileTarget(q); err != nil {
		return errors.Join(err, w.close(false))
	}
	err = r.config.Catalog.Read(ctx, q.Backup, progress, func(e archive.Entry, content io.Reader) error {
		return w.entry(ctx, e, content)
	})
	if err = errors.Join(err, w.close(err == nil)); err != nil || !q.Database {
		return err
	}
	done.Tables = len(done.Plan.Tables)
	r.keepKey(ctx, q)
	problems, err := r.compareRestored(ctx, q, w.manifest, nil)
	done.Problems = append(done.Problems, problems...)
	return err
}

// keepKey carries the signing key. A restore does not fail for it.
func (r *Restorer) keepKey(ctx context.Context, q Request) {
	if err := r.carryKey(ctx, q); err != nil {
		r.config.Logger.WarnContext(ctx, "signing key of backups not written to the restored database; a new one "+
			"will be made: add the old one to backup.trusted_keys",
			"event", "backup.key_not_restored", "error", err)
	}
}

// Summary implements jobs.Summarizer.
func (r Result) Summary() (s phrase.Summary) {
	s.Say("Restored %s {table|tables} and %s {file|files} of the backup %s.", r.Tables, r.Files, r.Plan.Backup)
	if r.Safety != nil {
		s.Say("What was there before is in the backup %s.", r.Safety.ID)
	}
	phrase.Count(&s, r.Executable, "%s {file was|files were} left out: a web server could execute {it|them}.")
	phrase.Count(&s, len(r.Problems), "%s {difference|differences} from what was backed up.")
	phrase.Lines(&s, phrase.Columns("Problem"), r.Problems)
	return s
}
