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

// Stored is one backup at one destination.
type Stored struct {
	Sidecar
	Destination string `json:"destination"`
	Key         string `json:"key"` // without an ending
}

// maxSidecar bounds what is read of a sidecar: 5,000 tables need half a MiB.
const maxSidecar = 16 << 20

// sidecarEnding is put after a backup's key.
const sidecarEnding = ".json"

func putSidecar(ctx context.Context, s storage.Store, key string, side Sidecar) error {
	data, err := json.MarshalIndent(side, "", "  ")
	if err != nil {
		return err
	}
	return s.Put(ctx, key+sidecarEnding, bytes.NewReader(data), storage.PutOptions{ContentType: "application/json", ExpectedSize: int64(len(data))})
}

// List finds the backups at a destination, newest first; "" means at all of
// them. It reads the sidecars, so that it works where our own tables are lost.
// A destination that cannot be listed is an error beside what the others have.
func (h *Handler) List(ctx context.Context, destination string) ([]Stored, error) {
	names := h.Destinations()
	if destination != "" {
		names = []string{destination}
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
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b Stored) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(b.ID, a.ID), cmp.Compare(a.Destination, b.Destination))
	})
	return all, errors.Join(failed...)
}

func (h *Handler) listOne(ctx context.Context, name string, store storage.Store) ([]Stored, error) {
	var found []Stored
	var failed []error
	for info, err := range store.List(ctx, h.c.Options.Prefix+"backup-") {
		if err != nil {
			return found, errors.Join(append(failed, err)...)
		}
		key, is := strings.CutSuffix(info.Key, sidecarEnding)
		if !is || strings.Contains(strings.TrimPrefix(key, h.c.Options.Prefix), "/") {
			continue
		}
		side, err := readSidecar(ctx, store, info.Key)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		found = append(found, Stored{Sidecar: side, Destination: name, Key: key})
	}
	return found, errors.Join(failed...)
}

func readSidecar(ctx context.Context, store storage.Store, key string) (Sidecar, error) {
	var side Sidecar
	body, _, err := store.Open(ctx, key)
	if err != nil {
		return side, err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxSidecar))
	if err != nil {
		return side, err
	}
	if err := json.Unmarshal(data, &side); err != nil {
		return side, fmt.Errorf("%s is no sidecar of a backup: %w", key, err)
	}
	// What a sidecar says must be about the archive beside it.
	if side.Format > formatVersion || path.Dir(side.Archive) != path.Dir(key) || !strings.HasPrefix(side.Archive, strings.TrimSuffix(key, sidecarEnding)+".") {
		return side, fmt.Errorf("%s does not describe the archive beside it, or is of a later version", key)
	}
	return side, nil
}

// ErrNoBackup says that no backup fits.
var ErrNoBackup = errors.New("no such backup")

// Show finds one backup by its id, or the newest good one for "latest".
// destination "" takes the first that has it.
func (h *Handler) Show(ctx context.Context, id, destination string) (Stored, error) {
	all, err := h.List(ctx, destination)
	for _, b := range all {
		if b.ID == id || id == "latest" && b.good() {
			return b, nil
		}
	}
	if err == nil {
		err = jobs.Permanent(fmt.Errorf("%w: %s", ErrNoBackup, id))
	}
	return Stored{}, err
}

// good says whether a backup would bring the whole site back.
func (b Stored) good() bool { return b.Status == Good && !b.Limited && !b.Safety }

// Download opens a backup's archive; the caller closes it.
func (h *Handler) Download(ctx context.Context, b Stored) (io.ReadCloser, storage.Info, error) {
	store, err := h.destination(b.Destination)
	if err != nil {
		return nil, storage.Info{}, err
	}
	return store.Open(ctx, b.Archive)
}
