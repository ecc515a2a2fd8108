package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/temporary"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Config is what a Verifier needs. All but Identities and MaxBytes is required.
type Config struct {
	Catalog    *catalog.Catalog
	Temporary  *temporary.Keeper
	Identities []age.Identity // without one, of an encrypted backup the bytes are verified
	// Level is how far a backup is read back where nobody says.
	Level manifest.Level
	// Budget limits the time of a verification. MaxBytes limits the size of what is
	// restored for it; 0 is no limit.
	Budget   time.Duration
	MaxBytes int64
	// Working is called when a verification begins, and what it returns when it ends.
	Working func() (done func())
	Now     func() time.Time
}

// Verifier reads backups back.
type Verifier struct{ config Config }

// New makes a Verifier.
func New(config Config) *Verifier { return &Verifier{config} }

// reading is one verification in the making.
type reading struct {
	*Verifier
	stored       catalog.Stored
	verification manifest.Verification
	level        manifest.Level
	progress     func(catalog.Step)
	tempDB       *temporary.Database
	// unprogrammed says that stored programs were left out of the temporary database.
	unprogrammed bool
	parser       *counter
	parts        map[string]string // SHA-256 of the database's entries
	files        map[string]string // of the files since the last list
	header       *manifest.Header
	manifest     *manifest.Manifest
	last         string // name of the last entry
	unsure       error  // why the verification says nothing, though nothing is wrong
	shared       bool   // of a repository, what is new and a share of the rest are read
}

// Verify reads a backup back and writes down what that showed. level "" means
// the configured one; where restoring is impossible, the verification's level and note
// say how far it went. The error wraps manifest.ErrUnverified when the backup is bad.
func (v *Verifier) Verify(ctx context.Context, b catalog.Stored, level manifest.Level, progress func(catalog.Step)) (
	manifest.Verification, error) {
	return v.verify(ctx, &reading{stored: b, level: level, progress: progress})
}

// VerifyNew is Verify of a backup that was just made. Of files in a repository it reads
// what the backup added, and a share of what was there: within shareDays days all is read.
func (v *Verifier) VerifyNew(ctx context.Context, b catalog.Stored, level manifest.Level,
	progress func(catalog.Step)) (manifest.Verification, error) {
	return v.verify(ctx, &reading{stored: b, level: level, progress: progress, shared: b.Repository != nil})
}

func (v *Verifier) verify(ctx context.Context, r *reading) (manifest.Verification, error) {
	b := r.stored
	level := r.level
	if level == "" || level == manifest.LevelNone {
		level = v.config.Level
	}
	if level == manifest.LevelNone {
		level = manifest.LevelParsed
	}
	if r.progress == nil {
		r.progress = func(catalog.Step) {}
	}
	defer v.config.Working()()
	r.Verifier, r.level, r.parser = v, level, newCounter()
	r.parts, r.files = map[string]string{}, map[string]string{}
	r.verification = manifest.Verification{Backup: b.ID, Destination: b.Destination, Started: v.config.Now().UTC()}
	caller := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, v.config.Budget, errors.New("verifying the backup took longer than "+
		"its budget"))
	defer cancel()
	err := r.run(ctx)
	if caller.Err() != nil { // says nothing about the backup
		return r.verification, fmt.Errorf("verifying the backup %s was interrupted: %w", b.ID, context.Cause(caller))
	}
	r.verification.Level, r.verification.Finished = r.level, v.config.Now().UTC()
	r.verification.OK = err == nil && len(r.verification.Problems) == 0
	r.verification.Unfinished = errors.Is(err, manifest.ErrUnfinished) || ctx.Err() != nil && !r.verification.OK
	if err != nil && !errors.Is(err, manifest.ErrUnverified) {
		r.problem("%v", err)
	}
	switch {
	case r.verification.Unfinished:
		err = fmt.Errorf("%w: %s at %s: %s", manifest.ErrUnfinished, b.ID, b.Destination,
			strings.Join(r.verification.Problems, "; "))
	case !r.verification.OK:
		err = fmt.Errorf("%w: %s at %s: %s", manifest.ErrUnverified, b.ID, b.Destination,
			strings.Join(r.verification.Problems, "; "))
	}
	recording, stop := jobs.Outlasting(caller)
	defer stop()
	return r.verification, errors.Join(err, v.config.Catalog.RecordVerification(recording, b, r.verification))
}

func (r *reading) problem(format string, args ...any) {
	if len(r.verification.Problems) < maxProblems {
		r.verification.Problems = append(r.verification.Problems, fmt.Sprintf(format, args...))
	}
}

func (r *reading) lessen(level manifest.Level, note string) {
	r.level, r.verification.Note = level, note
}

// note says besides what the verification could not show.
func (r *reading) note(text string) {
	r.verification.Note = strings.TrimPrefix(r.verification.Note+"; "+text, "; ")
}

func (r *reading) run(ctx context.Context) error {
	if r.stored.Encrypted && len(r.config.Identities) == 0 && r.level != manifest.LevelBytes {
		r.lessen(manifest.LevelBytes, "the backup is encrypted and this service holds no age identity")
	}
	if r.level == manifest.LevelRestored {
		var err error
		if ctx, err = r.openTempDB(ctx); err != nil {
			return err
		}
		defer r.closeTempDB(ctx)
	}
	body, info, err := r.config.Catalog.Download(ctx, r.stored)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return err // it is gone: that says something
	case err != nil:
		return fmt.Errorf("%w: %w", manifest.ErrUnfinished, err)
	}
	defer body.Close()
	hashing := archive.NewMeter(ctx, body, func(n int64) {
		r.progress(catalog.Step{Done: n, Total: r.stored.Size, Note: "reading the backup back from " +
			r.stored.Destination})
	})
	err = r.read(ctx, hashing)
	if _, drainErr := io.Copy(io.Discard, hashing); drainErr != nil {
		return errors.Join(err, drainErr)
	}
	r.compareArchive(ctx, hashing, info.Size)
	if err != nil {
		return err
	}
	if err := r.objects(ctx); err != nil {
		return err
	}
	if r.level == manifest.LevelBytes {
		return r.unsure
	}
	return cmp.Or(r.compare(ctx), r.unsure)
}

// read goes through the archive's entries, if they matter.
func (r *reading) read(ctx context.Context, from io.Reader) error {
	if r.level == manifest.LevelBytes {
		return nil
	}
	_, format, encrypted, ok := archive.Detect(r.stored.Archive)
	if !ok {
		return fmt.Errorf("%s is of no known format", r.stored.Archive)
	}
	b := r.stored
	b.WithoutFiles = b.WithoutFiles || r.shared
	return archive.Read(ctx, from, format, encrypted, r.config.Identities,
		r.config.Catalog.WithFiles(ctx, b, r.visit))
}

func (r *reading) visit(e archive.Entry, content io.Reader) error {
	if r.last == manifest.LastEntry {
		r.problem("%s follows after the manifest", e.Name)
	}
	if r.last == "" && e.Name != manifest.HeaderEntry {
		r.problem("the archive begins with %s", e.Name)
	}
	r.last = e.Name
	switch {
	case e.Name == manifest.HeaderEntry:
		return manifest.DecodeEntry(content, &r.header)
	case e.Name == manifest.LastEntry:
		return manifest.DecodeEntry(content, &r.manifest)
	case manifest.IsPart(e.Name):
		return r.piece(e, content)
	case strings.HasPrefix(e.Name, manifest.FilesFolder):
		sum := sha256.New()
		if _, err := io.Copy(sum, content); err != nil {
			return fmt.Errorf("reading %s: %w", e.Name, err)
		}
		r.files[strings.TrimPrefix(e.Name, manifest.FilesFolder)] = hex.EncodeToString(sum.Sum(nil))
		return nil
	case strings.HasPrefix(e.Name, manifest.ListFolder):
		return r.list(e, content)
	}
	r.problem("%s does not belong into a backup", e.Name)
	return nil
}

// piece hashes one entry of the database and restores or parses it.
func (r *reading) piece(e archive.Entry, content io.Reader) error {
	data, err := manifest.ReadEntry(e, content)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	r.parts[e.Name] = hex.EncodeToString(sum[:])
	part, table := manifest.PartOf(e.Name)
	if r.tempDB != nil {
		return r.tempDB.Load(part, table, data)
	}
	if r.header != nil && r.header.Engine == database.MySQL {
		return r.parser.load(part, data)
	}
	return nil
}

// list compares the files since the last list with their list.
func (r *reading) list(e archive.Entry, content io.Reader) error {
	return manifest.ReadList(e, content, func(f manifest.PackedFile) error {
		sum, there := r.files[f.Name]
		switch {
		case !there:
			r.problem("the file %s is missing", f.Name)
		case sum != f.SHA256:
			r.problem("the file %s is not as it was packed", f.Name)
		}
		delete(r.files, f.Name)
		r.verification.Files++
		return nil
	})
}

// maxProblems bounds what a verification lists.
const maxProblems = 50
