package backup

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/botble"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/temporary"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// verify reads a new backup back, from one destination as a whole, from the
// others by their bytes.
func (r *run) verify(ctx context.Context) error {
	level := r.c.Options.Verify
	if level == manifest.LevelNone {
		return nil
	}
	// What packing took is released first, so that both fit into little memory.
	r.archive = nil
	debug.FreeOSMemory()
	var failed []error
	bad, whole := 0, 0
	for i := range r.report.Outcomes {
		o := &r.report.Outcomes[i]
		if _, consumes := r.c.Destinations[o.Destination].(*botble.Store); consumes || o.Error != "" {
			if o.Error == "" {
				whole++
			}
			continue
		}
		verification, err := r.Verify(ctx, r.storedAt(o.Destination), level, r.progress)
		if r.report.Verification == nil || err != nil {
			r.report.Verification = &verification
		}
		if err != nil {
			o.Error = err.Error()
		}
		if err == nil || verification.Unfinished || ctx.Err() != nil {
			whole++
		} else {
			bad++
		}
		failed = append(failed, err)
		if level != manifest.LevelNone {
			level = manifest.LevelBytes
		}
	}
	if bad > 0 && whole == 0 { // no destination has a copy that is worth anything
		r.report.Status = manifest.Failed
	}
	return errors.Join(failed...)
}

// storedAt is the new backup's copy at a destination.
func (r *run) storedAt(destination string) catalog.Stored {
	return catalog.Stored{File: r.side, Destination: destination, Key: r.key, Origin: manifest.Own, TableCount: len(r.side.Tables)}
}

// verifier is one verification in the making.
type verifier struct {
	*Handler
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
}

// Verify reads a backup back and writes down what that showed. level "" means
// the configured one; where restoring is impossible, the verification's level and note
// say how far it went. The error wraps ErrUnproven when the backup is bad.
func (h *Handler) Verify(ctx context.Context, b catalog.Stored, level manifest.Level, progress func(catalog.Step)) (manifest.Verification, error) {
	if level == "" || level == manifest.LevelNone {
		level = h.c.Options.Verify
	}
	if level == manifest.LevelNone {
		level = manifest.LevelParsed
	}
	if progress == nil {
		progress = func(catalog.Step) {}
	}
	defer h.c.Working()()
	p := &verifier{Handler: h, stored: b, level: level, progress: progress, parts: map[string]string{}, files: map[string]string{}, parser: newCounter()}
	p.verification = manifest.Verification{Backup: b.ID, Destination: b.Destination, Started: h.c.Now().UTC()}
	caller := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, h.c.Options.VerifyBudget, errors.New("verifying the backup took longer than its budget"))
	defer cancel()
	err := p.run(ctx)
	if caller.Err() != nil { // says nothing about the backup
		return p.verification, fmt.Errorf("verifying the backup %s was interrupted: %w", b.ID, context.Cause(caller))
	}
	p.verification.Level, p.verification.Finished = p.level, h.c.Now().UTC()
	p.verification.OK = err == nil && len(p.verification.Problems) == 0
	p.verification.Unfinished = errors.Is(err, manifest.ErrUnfinished) || ctx.Err() != nil && !p.verification.OK
	if err != nil && !errors.Is(err, manifest.ErrUnverified) {
		p.problem("%v", err)
	}
	switch {
	case p.verification.Unfinished:
		err = fmt.Errorf("%w: %s at %s: %s", manifest.ErrUnfinished, b.ID, b.Destination, strings.Join(p.verification.Problems, "; "))
	case !p.verification.OK:
		err = fmt.Errorf("%w: %s at %s: %s", manifest.ErrUnverified, b.ID, b.Destination, strings.Join(p.verification.Problems, "; "))
	}
	return p.verification, errors.Join(err, h.RecordVerification(context.WithoutCancel(ctx), b, p.verification))
}

func (p *verifier) problem(format string, args ...any) {
	if len(p.verification.Problems) < maxProblems {
		p.verification.Problems = append(p.verification.Problems, fmt.Sprintf(format, args...))
	}
}

func (p *verifier) lessen(level manifest.Level, note string) {
	p.level, p.verification.Note = level, note
}

// note says besides what the verification could not show.
func (p *verifier) note(text string) {
	p.verification.Note = strings.TrimPrefix(p.verification.Note+"; "+text, "; ")
}

func (p *verifier) run(ctx context.Context) error {
	if p.stored.Encrypted && len(p.c.Options.Identities) == 0 && p.level != manifest.LevelBytes {
		p.lessen(manifest.LevelBytes, "the backup is encrypted and this service holds no age identity")
	}
	if p.level == manifest.LevelRestored {
		var err error
		if ctx, err = p.openTempDB(ctx); err != nil {
			return err
		}
		defer p.closeTempDB(ctx)
	}
	body, info, err := p.Download(ctx, p.stored)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return err // it is gone: that says something
	case err != nil:
		return fmt.Errorf("%w: %w", manifest.ErrUnfinished, err)
	}
	defer body.Close()
	hashing := archive.NewMeter(ctx, body, func(n int64) {
		p.progress(catalog.Step{Done: n, Total: p.stored.Size, Note: "reading the backup back from " + p.stored.Destination})
	})
	err = p.read(ctx, hashing)
	if _, drainErr := io.Copy(io.Discard, hashing); drainErr != nil {
		return errors.Join(err, drainErr)
	}
	p.compareArchive(ctx, hashing, info.Size)
	if err != nil {
		return err
	}
	if p.level == manifest.LevelBytes {
		return p.unsure
	}
	return cmp.Or(p.compare(ctx), p.unsure)
}

// read goes through the archive's entries, if they matter.
func (p *verifier) read(ctx context.Context, from io.Reader) error {
	if p.level == manifest.LevelBytes {
		return nil
	}
	_, format, encrypted, ok := archive.Detect(p.stored.Archive)
	if !ok {
		return fmt.Errorf("%s is of no known format", p.stored.Archive)
	}
	return archive.Read(ctx, from, format, encrypted, p.c.Options.Identities, p.visit)
}

func (p *verifier) visit(e archive.Entry, content io.Reader) error {
	if p.last == manifest.LastEntry {
		p.problem("%s follows after the manifest", e.Name)
	}
	if p.last == "" && e.Name != manifest.HeaderEntry {
		p.problem("the archive begins with %s", e.Name)
	}
	p.last = e.Name
	switch {
	case e.Name == manifest.HeaderEntry:
		return manifest.DecodeEntry(content, &p.header)
	case e.Name == manifest.LastEntry:
		return manifest.DecodeEntry(content, &p.manifest)
	case strings.HasPrefix(e.Name, manifest.DatabaseFolder), strings.HasPrefix(e.Name, manifest.RoutinesFolder):
		return p.piece(e, content)
	case strings.HasPrefix(e.Name, manifest.FilesFolder):
		sum := sha256.New()
		if _, err := io.Copy(sum, content); err != nil {
			return fmt.Errorf("reading %s: %w", e.Name, err)
		}
		p.files[strings.TrimPrefix(e.Name, manifest.FilesFolder)] = hex.EncodeToString(sum.Sum(nil))
		return nil
	case strings.HasPrefix(e.Name, manifest.ListFolder):
		return p.list(e, content)
	}
	p.problem("%s does not belong into a backup", e.Name)
	return nil
}

// piece hashes one entry of the database and restores or parses it.
func (p *verifier) piece(e archive.Entry, content io.Reader) error {
	data, err := manifest.ReadEntry(e, content)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	p.parts[e.Name] = hex.EncodeToString(sum[:])
	part, table := manifest.PartOf(e.Name)
	if p.tempDB != nil {
		return p.tempDB.Load(part, table, data)
	}
	if p.header != nil && p.header.Engine == database.MySQL {
		return p.parser.load(part, data)
	}
	return nil
}

// list compares the files since the last list with their list.
func (p *verifier) list(e archive.Entry, content io.Reader) error {
	lines := bufio.NewScanner(io.LimitReader(content, manifest.MaxEntry))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var f manifest.PackedFile
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return fmt.Errorf("reading %s: %w", e.Name, err)
		}
		sum, there := p.files[f.Name]
		switch {
		case !there:
			p.problem("the file %s is missing", f.Name)
		case sum != f.SHA256:
			p.problem("the file %s is not as it was packed", f.Name)
		}
		delete(p.files, f.Name)
		p.verification.Files++
	}
	return lines.Err()
}

// maxProblems bounds what a verification lists.
const maxProblems = 50
