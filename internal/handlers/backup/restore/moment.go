package restore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/binlog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/portable"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/temporary"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// MomentRequest says to which moment the database is brought, and where to.
type MomentRequest struct {
	// Backup is loaded first, and Chain of the archived log, which Log reads, applied to it.
	Backup catalog.Stored
	Chain  binlog.Chain
	Log    *binlog.Reader
	// Emptied says which tables the backup has without their rows. nil is none.
	Emptied func(table string) bool
	// At is the moment: what was committed in its second or before is there.
	At time.Time
	// IntoDSN names a new database; "" is the site.
	IntoDSN string
	// Confirm is the plan's Token, typed by a person.
	Confirm string
	// SkipSafety leaves out the backup that is made before.
	SkipSafety bool
	// Begin is called when nothing else restores or backs up, before anything is done;
	// its error ends the restore. nil is nothing to ask.
	Begin func(context.Context) error
}

// MomentResult says what was done.
type MomentResult struct {
	MomentPlan
	Safety   *catalog.Report `json:"safety,omitempty"`
	Tables   int             `json:"tables"`
	Rows     int64           `json:"rows"`
	Problems []string        `json:"problems,omitempty"`
}

// Token is what a person types to confirm it.
func (q MomentRequest) Token() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s|%s|%d|%s", q.Backup.ID, q.Backup.SHA256, q.At.Unix(), q.IntoDSN))
	return "moment-" + hex.EncodeToString(sum[:3])
}

// request is what is loaded before the log.
func (q MomentRequest) request() Request {
	return Request{Backup: q.Backup, Database: true, IntoDSN: q.IntoDSN, SkipSafety: q.SkipSafety}
}

// Moment brings a new database, or the site, to what the database was at a moment. The
// site is exchanged at once, as by any restore.
func (r *Restorer) Moment(ctx context.Context, q MomentRequest, progress func(catalog.Step)) (MomentResult, error) {
	var done MomentResult
	if q.Confirm != q.Token() {
		return done, fmt.Errorf("%w: make a plan and type its token", ErrUnconfirmed)
	}
	if progress == nil {
		progress = func(catalog.Step) {}
	}
	ctx, unlock, err := r.config.Locks.Exclusive(ctx, "the restore of "+q.Backup.ID+" to "+
		q.At.UTC().Format(time.DateTime))
	if err != nil {
		return done, err
	}
	defer unlock()
	if q.Begin != nil {
		if err := q.Begin(ctx); err != nil {
			return done, err
		}
	}
	defer r.config.Working()()
	request := q.request()
	err = r.settleEarlier(ctx)
	if err == nil {
		err = r.judgeOrigin(ctx, &request)
	}
	if err == nil {
		done.MomentPlan, err = r.PlanMoment(ctx, q)
	}
	if err == nil && len(done.Refused) > 0 {
		err = fmt.Errorf("%w: %s", ErrUnfit, strings.Join(done.Refused, "; "))
	}
	if err != nil {
		return done, fmt.Errorf("nothing was changed: %w", err)
	}
	staged, remove, err := r.stage(ctx, q.Backup, progress)
	if err != nil {
		return done, fmt.Errorf("nothing was changed: %w", err)
	}
	defer remove()
	q.Backup, request.Backup = staged, staged
	q.Backup.WithoutFiles, request.Backup.WithoutFiles = true, true
	if q.IntoDSN != "" {
		return done, r.intoNew(ctx, q, &done, progress)
	}
	return done, r.momentOfSite(ctx, q, request, &done, progress)
}

// intoNew makes the database that the request names. Where anything fails, it is dropped.
func (r *Restorer) intoNew(ctx context.Context, q MomentRequest, done *MomentResult,
	progress func(catalog.Step)) error {
	c, err := mysql.ParseDSN(q.IntoDSN)
	if err != nil || c.DBName == "" {
		return errors.New("nothing was changed: the new database has no name")
	}
	drop, err := r.build(ctx, q, c.DBName, done, progress)
	if err == nil {
		return nil
	}
	if drop != nil {
		err = errors.Join(err, drop(context.WithoutCancel(ctx)))
	}
	return fmt.Errorf("nothing was changed: %w", err)
}

// momentOfSite brings a temporary database to the moment, and then the site by what that
// holds.
func (r *Restorer) momentOfSite(ctx context.Context, q MomentRequest, request Request, done *MomentResult,
	progress func(catalog.Step)) error {
	temp := r.config.Temporary.NewDatabaseAt(r.config.DSN)
	outer := ctx
	ctx, claim, err := r.config.Temporary.Claim(ctx, temp, "the restore of "+q.Backup.ID+" to a moment")
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	drop, err := r.build(ctx, q, temp.Name, done, progress)
	defer func() {
		if drop != nil && drop(context.WithoutCancel(outer)) != nil {
			claim.Release(outer) // a sweep finds it
			return
		}
		claim.Remove(outer)
	}()
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if !q.SkipSafety {
		name := "before restoring " + q.At.UTC().Format(time.DateTime)
		report, err := r.config.Safety(ctx, name, true, false, progress)
		done.Safety = &report
		if err != nil {
			return fmt.Errorf("nothing was changed: the backup before the restore failed: %w", err)
		}
	}
	dsn, err := r.databaseDSN(q, temp.Name)
	if err != nil {
		return err
	}
	request.contents = func(ctx context.Context, load dump.Sink) (dump.Summary, error) {
		return dump.MySQL(ctx, dsn, dump.Options{}, load)
	}
	result := Result{Safety: done.Safety}
	err = r.restoreSite(ctx, request, progress, &result)
	done.Problems = append(done.Problems, result.Problems...)
	return err
}

// databaseDSN is the DSN of a database on the server that is written to; "" is none of them.
func (r *Restorer) databaseDSN(q MomentRequest, name string) (string, error) {
	c, err := mysql.ParseDSN(r.targetDSN(q.request()))
	if err != nil {
		return "", errors.New("the DSN of the database to restore into cannot be read")
	}
	c.DBName = name
	return c.FormatDSN(), nil
}

// build makes a database, loads the backup, and applies the log. drop is nil where
// the database was not made.
func (r *Restorer) build(ctx context.Context, q MomentRequest, name string, done *MomentResult,
	progress func(catalog.Step)) (drop func(context.Context) error, err error) {
	server, err := r.databaseDSN(q, "")
	if err != nil {
		return nil, err
	}
	target, err := portable.LookAt(ctx, server)
	if err != nil {
		return nil, err
	}
	s, err := temporary.OpenMySQL(ctx, server, name, dump.LoadOptions{DropDefiners: !target.SetsDefiners(),
		Adapt: target.Adapt(q.Backup.Needs, nil)})
	if err != nil {
		return nil, fmt.Errorf("making the database %s: %w", name, err)
	}
	drop = s.Drop
	m, err := r.fill(ctx, q, s.PieceLoader, progress)
	if err != nil {
		return drop, err
	}
	dsn, err := r.databaseDSN(q, name)
	if err != nil {
		return drop, err
	}
	inScratch := Request{Backup: q.Backup, Database: true, IntoDSN: dsn}
	problems, err := r.compareRestored(ctx, inScratch, m, nil)
	if err != nil || len(problems) > 0 {
		return drop, errors.Join(err, fmt.Errorf("%w: %s", manifest.ErrUnverified, strings.Join(problems, "; ")))
	}
	into := r.replayInto(q, dsn, *m.Dump, target.SetsDefiners())
	span := max(q.At.Sub(q.Backup.Log.Snapshot), 1)
	into.Progress = func(at time.Time) {
		progress(catalog.Step{Done: int64(max(at.Sub(q.Backup.Log.Snapshot), 0)), Total: int64(span),
			Note: "the log to " + at.UTC().Format(time.DateTime)})
	}
	if done.Result, err = q.Log.Replay(ctx, q.Chain, into); err != nil {
		return drop, err
	}
	return drop, r.count(ctx, dsn, m, done)
}

// fill loads the backup into the database.
func (r *Restorer) fill(ctx context.Context, q MomentRequest, load dump.PieceLoader,
	progress func(catalog.Step)) (*manifest.Manifest, error) {
	w := writer{request: Request{Backup: q.Backup, Database: true}, load: load, done: &Result{}}
	err := r.config.Catalog.Read(ctx, q.Backup, progress, func(e archive.Entry, content io.Reader) error {
		return w.entry(ctx, e, content)
	})
	if err = errors.Join(err, w.close(err == nil)); err != nil {
		return nil, err
	}
	if w.manifest == nil || w.manifest.Dump == nil || w.manifest.Dump.Log == nil {
		return nil, fmt.Errorf("%w: its archive does not say where the log stood", manifest.ErrUnverified)
	}
	if *w.manifest.Dump.Log != q.Backup.Log.LogPosition {
		return nil, fmt.Errorf("%w: its archive and its manifest file name other positions of the log",
			manifest.ErrUnverified)
	}
	return w.manifest, nil
}

// count says what there is now, and which tables have no rows of then.
func (r *Restorer) count(ctx context.Context, dsn string, m *manifest.Manifest, done *MomentResult) error {
	is, err := dump.MySQL(ctx, dsn, dump.Options{}, func(dump.Part, string, []byte) error { return nil })
	if err != nil {
		return fmt.Errorf("checking what was restored: %w", err)
	}
	done.Tables, done.Rows, done.WithoutRows = len(is.Tables), is.Rows, nil
	for _, t := range m.Dump.Tables {
		switch {
		case t.Empty:
			done.WithoutRows = append(done.WithoutRows, t.Name)
		case t.Unsafe:
			done.Problems = append(done.Problems, fmt.Sprintf("the table %s has no transactions (%s): rows that were "+
				"written while it was backed up may be there twice or not", t.Name, t.Engine))
		}
	}
	return nil
}

// Summary implements jobs.Summarizer.
func (m MomentResult) Summary() (s phrase.Summary) {
	s.Say("The database %s is as it was at %s UTC: %s {table|tables} with %s {row|rows}.", m.Database,
		m.At.UTC().Format(time.DateTime), m.Tables, m.Rows)
	s.Say("They are from the backup %s and %s {transaction|transactions} of the archived log.", m.Backup,
		m.Transactions)
	if m.Safety != nil {
		s.Say("What was there before is in the backup %s.", m.Safety.ID)
	}
	phrase.Lines(&s, phrase.Columns("Table without rows"), m.WithoutRows)
	phrase.Lines(&s, phrase.Columns("Problem"), m.Problems)
	return s
}
