package binlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"filippo.io/age"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// MostBytes is how much of the log a segment has at most, but for its last event.
const MostBytes = 32 << 20

// Config is what an Archiver needs. All but Recipients and Dir is required.
type Config struct {
	// DSN names the server and an account that may read its log.
	DSN string
	// Places are where the archive goes, by name: each has all of it.
	Places map[string]storage.Store // below Folder
	// Bases are the backups at a place from which a replay could begin.
	Bases      func(ctx context.Context, place string) ([]Base, error)
	Recipients []age.Recipient
	Signer     func(context.Context) (manifest.Signer, error)
	// Dir is for temporary files; "" is the usual one.
	Dir string
	// MinFree is the space that must stay free at a place, and Free what is free; known is
	// false where that is not known. Free may be nil.
	MinFree int64
	Free    func(place string) (bytes int64, known bool)
	// MostBytes is the constant; tests lower it.
	MostBytes int64
	Logger    *slog.Logger
}

// Archiver copies the binary log of a server to places. It is for one goroutine.
type Archiver struct {
	config Config
	known  map[string][]Segment // by place; what is at it
}

// NewArchiver makes an Archiver.
func NewArchiver(c Config) *Archiver { return &Archiver{c, map[string][]Segment{}} }

// Report says what a pass did, by place.
type Report struct {
	Server Server
	Places map[string]PlaceReport
}

// PlaceReport says what a pass did at one place.
type PlaceReport struct {
	Segments int   // that were stored
	Bytes    int64 // of the log
	// Waiting says that no backup has a position yet: there is nothing to archive for.
	Waiting bool
	// Gap says what of the log was gone before it was archived.
	Gap string
	Err error
	// Reach says how far one can go.
	Reach Reach
}

// Forget makes the next pass list again what is archived: another may have done it.
func (a *Archiver) Forget() { clear(a.known) }

// Pass archives what the server wrote since the last one. An error is about the server,
// those of places are in the report.
func (a *Archiver) Pass(ctx context.Context) (Report, error) {
	report := Report{Places: map[string]PlaceReport{}}
	var err error
	if report.Server, err = Look(ctx, a.config.DSN); err != nil {
		return report, err
	}
	groups := map[Tail][]string{}
	for name := range a.config.Places {
		at, gap, err := a.start(ctx, name, &report.Server)
		p := PlaceReport{Gap: gap, Err: err, Waiting: err == nil && at == Tail{}}
		report.Places[name] = p
		if err == nil && !p.Waiting {
			groups[at] = append(groups[at], name)
		}
	}
	for at, names := range groups {
		if err := a.copy(ctx, &report, at, names); err != nil {
			return report, err
		}
	}
	for name, p := range report.Places {
		if bases, err := a.config.Bases(ctx, name); err == nil && p.Err == nil {
			p.Reach = reach(a.known[name], bases)
		}
		report.Places[name] = p
	}
	return report, nil
}

// start says from where on a place lacks the log. gap says what cannot be had any more.
func (a *Archiver) start(ctx context.Context, place string, s *Server) (at Tail, gap string, err error) {
	all, is := a.known[place]
	if !is {
		if all, err = list(ctx, a.config.Places[place]); err != nil {
			return at, "", err
		}
		a.known[place] = all
	}
	if at = tail(all, s.Name); at == (Tail{}) {
		return a.first(ctx, place, s)
	}
	i := slices.IndexFunc(s.Files, func(f LogFile) bool { return f.Name == at.Name })
	if i >= 0 && s.Files[i].Size >= at.Offset {
		return at, "", nil
	}
	return s.oldest(), a.gap(at, s), nil
}

func (a *Archiver) gap(at Tail, s *Server) string {
	return fmt.Sprintf("the server removed its log after %s:%d before it was archived; it begins with %s now", at.Name,
		at.Offset, s.Files[0].Name)
}

// oldest is the begin of the first file that the server has.
func (s *Server) oldest() Tail {
	if len(s.Files) == 0 {
		return Tail{}
	}
	return Tail{File: File{Server: s.Name, Name: s.Files[0].Name}}
}

// first is where an archive begins: with the file of the oldest backup's position that
// the server still has.
func (a *Archiver) first(ctx context.Context, place string, s *Server) (Tail, string, error) {
	bases, err := a.config.Bases(ctx, place)
	if err != nil {
		return Tail{}, "", err
	}
	for _, f := range s.Files {
		if slices.ContainsFunc(bases, func(b Base) bool {
			return b.Position.Server == s.Name && b.Position.File == f.Name
		}) {
			return Tail{File: File{Server: s.Name, Name: f.Name}}, "", nil
		}
	}
	return Tail{}, "", nil
}

// copy copies from one position to the places that are there.
func (a *Archiver) copy(ctx context.Context, report *Report, at Tail, names []string) error {
	signer, err := a.config.Signer(ctx)
	if err != nil {
		return fmt.Errorf("reading the key that signs the archived log: %w", err)
	}
	most := a.config.MostBytes
	if most <= 0 {
		most = MostBytes
	}
	to := &spool{server: report.Server.Name, dir: a.config.Dir, recipients: a.config.Recipients, signer: signer,
		most: most, store: func(s Segment, stored *os.File) error { return a.store(ctx, report, names, s, stored) }}
	defer to.discard()
	if at.Offset > 0 {
		to.resumed = &at.File
	}
	err = fetch(ctx, a.config.DSN, &report.Server, at.Name, at.Offset, to)
	var purged *PurgedError
	if gone := errors.Is(err, errOtherFile) || errors.As(err, &purged); gone && at.Offset > 0 {
		for _, name := range names {
			p := report.Places[name]
			p.Gap = a.gap(at, &report.Server)
			report.Places[name] = p
		}
		return a.copy(ctx, report, report.Server.oldest(), names)
	}
	if err != nil {
		return err
	}
	return to.flush()
}

// store puts a segment to all places that have everything before it. It fails where none does.
func (a *Archiver) store(ctx context.Context, report *Report, names []string, s Segment, stored *os.File) error {
	var failed []error
	for _, name := range names {
		p := report.Places[name]
		if p.Err == nil {
			if p.Err = a.put(ctx, name, s, stored); p.Err == nil {
				a.known[name] = append(a.known[name], s)
				p.Segments, p.Bytes = p.Segments+1, p.Bytes+s.End-s.Start
			}
			report.Places[name] = p
		}
		if p.Err == nil {
			continue
		}
		if failed = append(failed, p.Err); len(failed) == len(names) {
			return fmt.Errorf("storing the log: %w", errors.Join(failed...))
		}
	}
	return nil
}

// putTime bounds the storing of a segment.
const putTime = 10 * time.Minute

func (a *Archiver) put(ctx context.Context, name string, s Segment, stored *os.File) error {
	if a.config.Free != nil {
		if free, known := a.config.Free(name); known && free < a.config.MinFree+s.Size {
			return fmt.Errorf("only %d MiB are free there", free>>20)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	if _, err := stored.Seek(0, 0); err != nil {
		return err
	}
	return a.config.Places[name].Put(ctx, s.key(), stored, storage.PutOptions{ContentType: "application/octet-stream",
		ExpectedSize: s.Size})
}
