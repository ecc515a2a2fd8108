package backup

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Level says how far a backup is read back.
type Level string

// The levels of a proof, each more than the one before it.
const (
	LevelNone     Level = "none"
	LevelBytes    Level = "bytes"    // the archive has the size and hash that it was given
	LevelParsed   Level = "parsed"   // and every entry its own hash, and the SQL as many rows as were dumped
	LevelRestored Level = "restored" // and a scratch database made of it equals what was dumped
)

// Proof is what reading a backup back from where it lies showed.
type Proof struct {
	Backup      string    `json:"backup"`
	Destination string    `json:"destination"`
	Level       Level     `json:"level"`
	OK          bool      `json:"ok"`
	Started     time.Time `json:"started"`
	Finished    time.Time `json:"finished"`
	Bytes       int64     `json:"bytes"`
	Tables      int       `json:"tables"`
	Rows        int64     `json:"rows"`
	Files       int64     `json:"files"`
	// Note says why the proof went less far than it was to.
	Note string `json:"note,omitempty"`
	// Problems are what is wrong, the first ones.
	Problems []string `json:"problems,omitempty"`
}

// ErrUnproven says that a backup is not what it should be.
var ErrUnproven = errors.New("the backup does not hold what it should")

// maxProblems bounds what a proof lists.
const maxProblems = 50

// Verify is the kind backup.verify: it proves the newest good backup, or one
// that is named, at every destination or at one.
var Verify = jobs.Kind[VerifyPayload]{
	Name:   "backup.verify",
	Policy: jobs.Policy{MaxAttempts: 2, Timeout: 4 * time.Hour, Backoff: jobs.Fixed(time.Hour), Limit: 1},
}

// VerifyPayload is the data of backup.verify.
type VerifyPayload struct {
	ID      string `json:"id,omitempty"`      // "" is the newest good one
	Storage string `json:"storage,omitempty"` // "" is every destination that has it
	Level   Level  `json:"level,omitempty"`   // "" is the configured one
}

func (h *Handler) verifyJob(ctx context.Context, _ jobs.Job, p VerifyPayload) error {
	if p.ID == "" {
		p.ID = "latest"
	}
	first, err := h.Show(ctx, p.ID, p.Storage)
	if err != nil {
		return err
	}
	all, err := h.List(ctx, p.Storage)
	if err != nil {
		return err
	}
	var proofs []Proof
	var failed []error
	for _, b := range all {
		if b.ID == first.ID {
			proof, err := h.Verify(ctx, b, p.Level, func(s Step) { jobs.Report(ctx, s.Done, s.Total, s.Note) })
			proofs = append(proofs, proof)
			failed = append(failed, err)
		}
	}
	return errors.Join(append(failed, jobs.SetResult(ctx, proofs))...)
}

// prove reads a new backup back, from one destination as a whole, from the
// others by their bytes.
func (r *run) prove(ctx context.Context) error {
	level := r.c.Options.Verify
	if level == LevelNone {
		return nil
	}
	var failed []error
	side := r.sidecar()
	for _, o := range r.report.Outcomes {
		if _, consumes := r.c.Destinations[o.Destination].(*Botble); consumes {
			continue
		}
		proof, err := r.Verify(ctx, Stored{side, o.Destination, r.key}, level, r.progress)
		if r.report.Proof == nil || err != nil {
			r.report.Proof = &proof
		}
		failed = append(failed, err)
		if level != LevelNone {
			level = LevelBytes
		}
	}
	return errors.Join(failed...)
}

// proving is one proof in the making.
type proving struct {
	*Handler
	stored   Stored
	proof    Proof
	level    Level
	progress func(Step)
	scratch  *scratch
	parser   *counter
	pieces   map[string]string // SHA-256 of the database's entries
	files    map[string]string // of the files since the last list
	header   *Header
	manifest *Manifest
	last     string // name of the last entry
}

// Verify reads a backup back and writes down what that showed. level "" means
// the configured one; where restoring is impossible, the proof's level and note
// say how far it went. The error wraps ErrUnproven when the backup is bad.
func (h *Handler) Verify(ctx context.Context, b Stored, level Level, progress func(Step)) (Proof, error) {
	if level == "" || level == LevelNone {
		level = h.c.Options.Verify
	}
	if level == LevelNone {
		level = LevelParsed
	}
	if progress == nil {
		progress = func(Step) {}
	}
	p := &proving{Handler: h, stored: b, level: level, progress: progress, pieces: map[string]string{}, files: map[string]string{}, parser: newCounter()}
	p.proof = Proof{Backup: b.ID, Destination: b.Destination, Started: h.c.Now().UTC()}
	ctx, cancel := context.WithTimeoutCause(ctx, h.c.Options.VerifyBudget, errors.New("proving the backup took longer than its budget"))
	defer cancel()
	err := p.run(ctx)
	p.proof.Level, p.proof.Finished = p.level, h.c.Now().UTC()
	p.proof.OK = err == nil && len(p.proof.Problems) == 0
	if err != nil && !errors.Is(err, ErrUnproven) {
		p.problem("%v", err)
	}
	if !p.proof.OK {
		err = fmt.Errorf("%w: %s at %s: %s", ErrUnproven, b.ID, b.Destination, strings.Join(p.proof.Problems, "; "))
	}
	return p.proof, errors.Join(err, h.rememberProof(context.WithoutCancel(ctx), p.proof))
}

func (p *proving) problem(format string, args ...any) {
	if len(p.proof.Problems) < maxProblems {
		p.proof.Problems = append(p.proof.Problems, fmt.Sprintf(format, args...))
	}
}

func (p *proving) lessen(level Level, note string) {
	p.level, p.proof.Note = level, note
}

func (p *proving) run(ctx context.Context) error {
	if p.stored.Encrypted && len(p.c.Options.Identities) == 0 && p.level != LevelBytes {
		p.lessen(LevelBytes, "the backup is encrypted and this service holds no age identity")
	}
	if p.level == LevelRestored {
		if err := p.openScratch(ctx); err != nil {
			return err
		}
		defer p.closeScratch(ctx)
	}
	body, info, err := p.Download(ctx, p.stored)
	if err != nil {
		return err
	}
	defer body.Close()
	hashing := &measured{from: body, sum: sha256.New(), ctx: ctx, tell: func(n int64) {
		p.progress(Step{n, p.stored.Size, "reading the backup back from " + p.stored.Destination})
	}}
	err = p.read(ctx, hashing)
	if _, drainErr := io.Copy(io.Discard, hashing); drainErr != nil {
		return errors.Join(err, drainErr)
	}
	p.compareArchive(ctx, hashing, info.Size)
	if err != nil {
		return err
	}
	if p.level == LevelBytes {
		return nil
	}
	return p.compare(ctx)
}

// read goes through the archive's entries, if they matter.
func (p *proving) read(ctx context.Context, from io.Reader) error {
	if p.level == LevelBytes {
		return nil
	}
	_, format, encrypted, ok := archive.Detect(p.stored.Archive)
	if !ok {
		return fmt.Errorf("%s is of no known format", p.stored.Archive)
	}
	return archive.Read(ctx, from, format, encrypted, p.c.Options.Identities, p.visit)
}

// compareArchive holds the archive's bytes against the sidecar and against
// what this database remembers, as an archive and its sidecar could be
// replaced together.
func (p *proving) compareArchive(ctx context.Context, m *measured, stated int64) {
	p.proof.Bytes = m.n
	sum := hex.EncodeToString(m.sum.Sum(nil))
	if m.n != p.stored.Size || stated >= 0 && stated != m.n {
		p.problem("the archive has %d bytes, it was made with %d", m.n, p.stored.Size)
	}
	if sum != p.stored.SHA256 {
		p.problem("the archive's SHA-256 is %s, it was made with %s", sum, p.stored.SHA256)
	}
	recorded, err := p.recorded(ctx, p.stored.ID)
	if err != nil {
		p.problem("what was recorded of the backup cannot be read: %v", err)
	} else if recorded != "" && recorded != sum {
		p.problem("the archive is not the one that was made: its SHA-256 is %s, recorded is %s", sum, recorded)
	}
}

func (p *proving) visit(e archive.Entry, content io.Reader) error {
	if p.last == manifestName {
		p.problem("%s follows after the manifest", e.Name)
	}
	if p.last == "" && e.Name != headerName {
		p.problem("the archive begins with %s", e.Name)
	}
	p.last = e.Name
	switch {
	case e.Name == headerName:
		return decodeEntry(content, &p.header)
	case e.Name == manifestName:
		return decodeEntry(content, &p.manifest)
	case strings.HasPrefix(e.Name, databaseFolder), strings.HasPrefix(e.Name, routinesFolder):
		return p.piece(e, content)
	case strings.HasPrefix(e.Name, filesFolder):
		sum := sha256.New()
		if _, err := io.Copy(sum, content); err != nil {
			return fmt.Errorf("reading %s: %w", e.Name, err)
		}
		p.files[strings.TrimPrefix(e.Name, filesFolder)] = hex.EncodeToString(sum.Sum(nil))
		return nil
	case strings.HasPrefix(e.Name, listFolder):
		return p.list(e, content)
	}
	p.problem("%s does not belong into a backup", e.Name)
	return nil
}

// maxEntry bounds what is held in memory of an entry: pieces and lists are
// made far smaller, and a manifest of 5,000 tables has a few MiB.
const maxEntry = 256 << 20

func readEntry(e archive.Entry, content io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(content, maxEntry+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", e.Name, err)
	}
	if len(data) > maxEntry {
		return nil, fmt.Errorf("%s is larger than a backup makes it: %w", e.Name, archive.ErrUnsafe)
	}
	return data, nil
}

func decodeEntry[T any](content io.Reader, into **T) error {
	data, err := readEntry(archive.Entry{Name: "the manifest"}, content)
	if err != nil {
		return err
	}
	*into = new(T)
	if err := json.Unmarshal(data, *into); err != nil {
		return fmt.Errorf("reading the manifest: %w", err)
	}
	return nil
}

// piece hashes one entry of the database and restores or parses it.
func (p *proving) piece(e archive.Entry, content io.Reader) error {
	data, err := readEntry(e, content)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	p.pieces[e.Name] = hex.EncodeToString(sum[:])
	part, table := partOf(e.Name)
	if p.scratch != nil {
		return p.scratch.Load(part, table, data)
	}
	if p.header != nil && p.header.Engine == mysqlEngine {
		return p.parser.load(part, data)
	}
	return nil
}

// partOf reads part and table from an entry's name, which a streaming reader
// has before the manifest.
func partOf(name string) (dump.Part, string) {
	part := dump.Main
	rest, extra := strings.CutPrefix(name, routinesFolder)
	if extra {
		part = dump.Extra
	} else {
		rest = strings.TrimPrefix(name, databaseFolder)
	}
	_, table, _ := strings.Cut(strings.TrimSuffix(rest, ".sql"), "-")
	return part, tableOfEntry(table)
}

// list compares the files since the last list with their list.
func (p *proving) list(e archive.Entry, content io.Reader) error {
	lines := bufio.NewScanner(io.LimitReader(content, maxEntry))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var f File
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
		p.proof.Files++
	}
	return lines.Err()
}

// compare holds what was read against the manifest.
func (p *proving) compare(ctx context.Context) error {
	m := p.manifest
	if p.header == nil || m == nil || p.last != manifestName {
		p.problem("the archive has no header or does not end with its manifest")
		return nil
	}
	if p.header.ID != p.stored.ID || m.ID != p.stored.ID {
		p.problem("the archive is the backup %s, not %s", m.ID, p.stored.ID)
	}
	for _, piece := range m.Pieces {
		if p.pieces[piece.Name] != piece.SHA256 {
			p.problem("%s is missing or not as it was packed", piece.Name)
		}
		delete(p.pieces, piece.Name)
	}
	for name := range p.pieces {
		if m.DatabaseError == "" {
			p.problem("%s is not in the manifest", name)
		}
	}
	if p.proof.Files != m.FileCount {
		p.problem("%d files are listed, %d were packed", p.proof.Files, m.FileCount)
	}
	if m.Dump == nil || m.DatabaseError != "" {
		return nil
	}
	p.proof.Tables, p.proof.Rows = len(m.Dump.Tables), m.Dump.Rows
	if p.scratch != nil {
		return p.compareScratch(ctx)
	}
	if m.Engine == mysqlEngine {
		if err := p.parser.close(); err != nil {
			p.problem("%v", err)
		}
		if m.Dump.Rows >= 0 && p.parser.rows != m.Dump.Rows {
			p.problem("the SQL has %d rows, %d were dumped", p.parser.rows, m.Dump.Rows)
		}
	}
	return nil
}
