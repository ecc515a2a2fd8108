package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/binlog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/botble"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/lock"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// LogMode says whether the binary log is archived behind backups.
type LogMode string

// The modes. LogAuto archives it where the server writes one and the account may read
// it, and says nothing where not; LogOn warns then.
const (
	LogAuto LogMode = "auto"
	LogOn   LogMode = "on"
	LogOff  LogMode = "off"
)

// logArchive is the name of the lock of the process that archives, and logTrouble that of
// the note that says what keeps it from that.
const (
	logArchive = "log-archive"
	logTrouble = "log-trouble"
)

// HasLog says whether the site's database can have a log that is archived.
func (h *Handler) HasLog() bool {
	return database.Of(h.c.Site.DB).Name == database.MySQL && h.c.DSN != "" && h.c.Options.Log != LogOff
}

func (h *Handler) logDSN() string { return cmp.Or(h.c.LogDSN, h.c.DSN) }

// logPlaces are the destinations that take the log: all but the CMS's own folder.
func (h *Handler) logPlaces() map[string]storage.Store {
	places := map[string]storage.Store{}
	for name, store := range h.c.Destinations {
		if _, foreign := store.(*botble.Store); !foreign {
			places[name] = storage.Under(store, h.c.Options.Prefix+binlog.Folder)
		}
	}
	return places
}

// startsLog says whether a replay may begin with a backup.
func startsLog(b catalog.Stored) bool {
	return b.Log != nil && b.Made == manifest.Complete && b.Database && !b.Limited && !b.Origin.Foreign()
}

// logBases are the positions of the backups at a destination.
func (h *Handler) logBases(ctx context.Context, destination string) ([]binlog.Base, error) {
	all, err := h.List(ctx, destination)
	if err != nil {
		return nil, err
	}
	return basesOf(all), nil
}

func basesOf(all []catalog.Stored) (bases []binlog.Base) {
	for _, b := range all {
		if startsLog(b) {
			bases = append(bases, binlog.Base{Position: b.Log.LogPosition, Snapshot: b.Log.Snapshot})
		}
	}
	return bases
}

func (h *Handler) newArchiver() *binlog.Archiver {
	return binlog.NewArchiver(binlog.Config{DSN: h.logDSN(), Places: h.logPlaces(), Bases: h.logBases,
		Recipients: h.c.Options.Recipients, Signer: h.Signer, Dir: h.c.StageDir, MinFree: h.c.Options.MinFree,
		Free: func(place string) (int64, bool) {
			knows, ok := h.c.Destinations[place].(interface{ Free() (int64, error) })
			if !ok {
				return 0, false
			}
			free, err := knows.Free()
			return free, err == nil
		}, Logger: h.c.Logger})
}

// lookAgain is how often a server whose log cannot be archived is asked again.
const lookAgain = 10 * time.Minute

// ArchiveLog archives the binary log every Options.LogEvery until ctx ends. One process
// of all hosts does it at a time. Trouble never ends it.
func (h *Handler) ArchiveLog(ctx context.Context) error {
	t := newLogTurns(h)
	for ctx.Err() == nil {
		every := h.c.Options.LogEvery
		var missing *binlog.MissingError
		switch err := t.turn(ctx); {
		case errors.As(err, &missing):
			every = max(every, lookAgain)
		case err != nil && ctx.Err() == nil:
			h.c.Logger.WarnContext(ctx, "binary log not archived", "event", "backup.log_failed", "error", err)
		}
		timer := time.NewTimer(every)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
}

// logTurns are the turns of one process.
type logTurns struct {
	*Handler
	archiver *binlog.Archiver
	last     time.Time // when the lock was taken last, by the database's clock
	noted    string
	limited  time.Time // when it was held to its limits last
}

func newLogTurns(h *Handler) *logTurns {
	return &logTurns{Handler: h, archiver: h.newArchiver(), noted: "?"} // what is noted is not known yet
}

// turn archives what is new, unless another process is at it. A *binlog.MissingError says
// what a person must change before anything can be archived.
func (t *logTurns) turn(ctx context.Context) error {
	before, err := t.locks.Holder(ctx, logArchive)
	if err != nil {
		return err
	}
	held, l, err := t.locks.Acquire(ctx, lock.Request{Name: logArchive, Purpose: "archiving the binary log"})
	var other *lock.HeldError
	if errors.As(err, &other) {
		return nil
	}
	if err != nil {
		return err
	}
	defer l.Release(ctx)
	if !before.Started.Equal(t.last) { // another archived meanwhile
		t.archiver.Forget()
	}
	text, err := t.archiveOnce(held, t.archiver)
	if held.Err() != nil {
		return context.Cause(held)
	}
	t.note(ctx, text)
	var missing *binlog.MissingError
	if errors.As(err, &missing) {
		return err
	}
	t.limit(held)
	mine, err := t.locks.Holder(ctx, logArchive)
	t.last = mine.Started
	return err
}

// note writes down what is wrong with the archive, for other processes, and logs it where
// it is new.
func (t *logTurns) note(ctx context.Context, text string) {
	if text == t.noted || ctx.Err() != nil {
		return
	}
	err := t.locks.Forget(ctx, logTrouble)
	if text != "" {
		t.c.Logger.WarnContext(ctx, "binary log not archived", "event", "backup.log_failed", "error", text)
		err = t.locks.Note(ctx, logTrouble, fmt.Sprintf("%.180s", text))
	}
	if err == nil {
		t.noted = text
	}
}

// archiveOnce archives what is new, and says what a person should do about; "" for
// nothing. An error says why nothing was archived.
func (h *Handler) archiveOnce(ctx context.Context, a *binlog.Archiver) (trouble string, err error) {
	report, err := a.Pass(ctx)
	var missing *binlog.MissingError
	switch {
	case errors.As(err, &missing) && h.c.Options.Log == LogAuto:
		return "", err
	case errors.As(err, &missing):
		return missing.What + ": " + missing.Fix, err
	case err != nil:
		return err.Error(), err
	}
	var found []string
	for name, p := range report.Places {
		if p.Gap != "" {
			h.c.Logger.WarnContext(ctx, "binary log has a gap in the archive", "event", "backup.log_gap",
				"destination", name, "error", p.Gap)
		}
		switch {
		case p.Err != nil:
			found = append(found, fmt.Sprintf("%s: %v", name, p.Err))
		case p.Reach.Missing != "":
			found = append(found, fmt.Sprintf("%s: %s; make a backup (cmsjobs backup create --only-database)", name,
				p.Reach.Missing))
		}
	}
	slices.Sort(found)
	return strings.Join(found, "; "), nil
}

// LogTrouble says what keeps the log from being archived; "" for nothing. It is cheap.
func (h *Handler) LogTrouble(ctx context.Context) (string, error) {
	if h.c.Options.Log == LogOff {
		return "", nil
	}
	noted, err := h.locks.Holder(ctx, logTrouble)
	return noted.Purpose, err
}

// LogReach says what moments can be restored, by destination.
func (h *Handler) LogReach(ctx context.Context) (map[string]binlog.Reach, error) {
	if !h.HasLog() {
		return nil, nil
	}
	out := map[string]binlog.Reach{}
	var failed []error
	for name, place := range h.logPlaces() {
		bases, err := h.logBases(ctx, name)
		if err == nil {
			out[name], err = binlog.ReachOf(ctx, place, bases)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("destination %s: %w", name, err))
		}
	}
	return out, errors.Join(failed...)
}

// LookAtLog asks the server for its log. A *binlog.MissingError says why it is not
// archived.
func (h *Handler) LookAtLog(ctx context.Context) (binlog.Server, error) {
	return binlog.Look(ctx, h.logDSN())
}
