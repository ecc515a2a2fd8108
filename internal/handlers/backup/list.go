package backup

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Stored is one backup at one destination. In a list, Tables and Warnings are
// left out; TableCount says how many there are.
type Stored struct {
	ManifestFile
	Destination string `json:"destination"`
	Key         string `json:"key"` // without an ending
	Origin      Origin `json:"origin"`
	TableCount  int    `json:"table_count"`
	// staged is the path of a private copy of the archive, which is read instead.
	staged string
}

// Contents says which parts of the site the backup has, for people.
func (b Stored) Contents() string {
	switch {
	case b.Database && b.Files:
		return "database and files"
	case b.Database:
		return "the database only"
	}
	return "the files only"
}

// maxManifestFile bounds what is read of a manifest file: 5,000 tables need half a MiB.
const maxManifestFile = 16 << 20

// manifestFileEnding is put after a backup's key.
const manifestFileEnding = ".json"

// List finds the backups at a destination, newest first; "" means at all of
// them. It reads the manifest files, so that it works where our own tables are lost;
// where they are not, it reads only those that changed since the last list. A
// destination that cannot be listed is an error beside what the others have.
func (h *Handler) List(ctx context.Context, destination string) ([]Stored, error) {
	names := h.Destinations()
	if destination != "" {
		names = []string{destination}
	}
	k, err := h.knowledge(ctx)
	if err != nil {
		return nil, err
	}
	var all []Stored
	var failed []error
	for _, name := range names {
		store, err := h.destination(name)
		if err != nil {
			return nil, err
		}
		found, err := h.listOne(ctx, name, store)
		if err != nil {
			failed = append(failed, fmt.Errorf("destination %s: %w", name, err))
		}
		for _, e := range found {
			all = append(all, k.stored(e, name))
		}
	}
	slices.SortFunc(all, func(a, b Stored) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(b.ID, a.ID), cmp.Compare(a.Destination, b.Destination))
	})
	return all, errors.Join(failed...)
}

// knowledge is what our own tables know of all backups.
type knowledge struct {
	signer        signer
	verifications map[copyOf]*VerificationSummary
	sums          map[string]string // archives' hashes by id
}

func (h *Handler) knowledge(ctx context.Context) (knowledge, error) {
	k := knowledge{sums: map[string]string{}}
	var err error
	if k.signer, err = h.signer(ctx); err != nil {
		return k, err
	}
	if k.verifications, err = h.newestVerifications(ctx, ""); err != nil {
		return k, err
	}
	var rows []struct {
		ID  string `db:"id"`
		Sum string `db:"archive_sha256"`
	}
	if err := h.c.DB.SelectContext(ctx, &rows, "SELECT id, archive_sha256 FROM cmsjobs_backups"); err != nil {
		return k, fmt.Errorf("reading the hashes of the backups: %w", err)
	}
	for _, r := range rows {
		k.sums[r.ID] = r.Sum
	}
	return k, nil
}

// stored joins what a manifest file says with what our tables know: of a copy that
// they know a verification of, theirs counts, as a manifest file can be replaced.
func (k knowledge) stored(e indexEntry, destination string) Stored {
	b := Stored{ManifestFile: e.ManifestFile, Destination: destination, Key: strings.TrimSuffix(e.key, manifestFileEnding), TableCount: e.TableCount}
	b.Origin = k.signer.origin(e.Signer, b.SHA256, k.sums[b.ID])
	if p, known := k.verifications[copyOf{b.ID, destination}]; known {
		b.settle(p)
	}
	return b
}

func readManifestFile(ctx context.Context, store storage.Store, key string) (ManifestFile, error) {
	var side ManifestFile
	body, info, err := store.Open(ctx, key)
	if err != nil {
		return side, err
	}
	defer body.Close()
	var data bytes.Buffer
	data.Grow(int(min(max(info.Size, 0), maxManifestFile)) + bytes.MinRead)
	if _, err := data.ReadFrom(io.LimitReader(body, maxManifestFile)); err != nil {
		return side, err
	}
	if err := json.Unmarshal(data.Bytes(), &side); err != nil {
		return side, fmt.Errorf("%s is no manifest file of a backup: %w", key, err)
	}
	// What a manifest file says must be about the archive beside it.
	if side.Format > formatVersion || path.Dir(side.Archive) != path.Dir(key) || !strings.HasPrefix(side.Archive, strings.TrimSuffix(key, manifestFileEnding)+".") {
		return side, fmt.Errorf("%s does not describe the archive beside it, or is of a later version", key)
	}
	if side.Made != Complete && side.Made != Partial {
		return side, fmt.Errorf("%s does not say whether its backup was made completely", key)
	}
	side.settle(side.Verification)
	return side, nil
}

// full reads a backup's manifest file again, with all tables.
func (h *Handler) full(ctx context.Context, b Stored) (Stored, error) {
	store, err := h.destination(b.Destination)
	if err != nil {
		return b, err
	}
	side, err := readManifestFile(ctx, store, b.Key+manifestFileEnding)
	if err != nil {
		return b, err
	}
	k, err := h.knowledge(ctx)
	if err != nil {
		return b, err
	}
	return k.stored(entryOf(b.Key+manifestFileEnding, side, true), b.Destination), nil
}

// Download opens a backup's archive; the caller closes it.
func (h *Handler) Download(ctx context.Context, b Stored) (io.ReadCloser, storage.Info, error) {
	if b.staged != "" {
		return openStaged(b)
	}
	store, err := h.destination(b.Destination)
	if err != nil {
		return nil, storage.Info{}, err
	}
	return store.Open(ctx, b.Archive)
}

// ErrNoBackup says that no backup fits.
var ErrNoBackup = jobs.NotFound("no such backup")

// Wanted names a backup.
type Wanted struct {
	// ID of the backup, or "latest".
	ID string
	// Destination "" takes any that has it.
	Destination string
	// Database and Files are what it must hold. Where neither is set, "latest"
	// prefers a backup that holds both.
	Database, Files bool
}

// Show finds one backup by its id, or the latest one.
func (h *Handler) Show(ctx context.Context, id, destination string) (Stored, error) {
	b, _, err := h.Find(ctx, Wanted{ID: id, Destination: destination})
	return b, err
}

// Find finds one backup. The latest one is the newest that is complete, of a
// known origin, and verified or not yet due for a verification. passed are the newer
// ones that are none of that.
func (h *Handler) Find(ctx context.Context, w Wanted) (found Stored, passed []Stored, err error) {
	all, err := h.List(ctx, w.Destination)
	var fits []Stored
	for _, b := range all {
		if b.ID == w.ID || w.ID == "latest" && h.candidate(b, w) {
			fits = append(fits, b)
		}
	}
	if len(fits) == 0 {
		if err == nil {
			err = jobs.Permanent(fmt.Errorf("%w: %s%s", ErrNoBackup, w.ID, h.unfit(all, w)))
		}
		return Stored{}, nil, err
	}
	found = slices.MinFunc(fits, func(a, b Stored) int { return cmp.Compare(h.rank(a, w), h.rank(b, w)) }) // the first, so the newest, of the best
	if w.ID == "latest" {
		for _, b := range all {
			if b.Started.After(found.Started) && !b.Safety {
				passed = append(passed, b)
			}
		}
	}
	found, err = h.full(ctx, found)
	return found, passed, err
}

// unfit says why none of the backups is the latest one.
func (h *Handler) unfit(all []Stored, w Wanted) string {
	if w.ID != "latest" || len(all) == 0 {
		return ""
	}
	var failed, partial, other int
	for _, b := range all {
		switch b.Status {
		case Failed:
			failed++
		case Partial:
			partial++
		default:
			other++
		}
	}
	return fmt.Sprintf(" (of %s, the newest verification of %d failed, %d are partial, and %d hold other parts, or only some tables, "+
		"or were made before a restore; name one by its id: cmsjobs backup list)",
		plural(len(all), "backup"), failed, partial, other)
}

// candidate says whether a backup may be the latest one at all.
func (h *Handler) candidate(b Stored, w Wanted) bool {
	return b.Status == Complete && !b.Limited && !b.Safety && (b.Database || !w.Database) && (b.Files || !w.Files)
}

// rank orders candidates, the best first: of known origin, verified or not due,
// with both parts where none was named.
func (h *Handler) rank(b Stored, w Wanted) (rank int) {
	if b.Origin.foreign() {
		rank += 4
	}
	if b.Status == Failed || !h.Usable(b) && !b.Origin.foreign() {
		rank += 2
	}
	if !w.Database && !w.Files && !(b.Database && b.Files) {
		rank++
	}
	return rank
}
