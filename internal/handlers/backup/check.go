package backup

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Estimate is what a backup will about be, before it is made.
type Estimate struct {
	DatabaseBytes int64 `json:"database_bytes"`
	Files         int64 `json:"files"`
	FileBytes     int64 `json:"file_bytes"`
	// Archive is a cautious guess at the archive's size.
	Archive int64 `json:"archive"`
	// Free is the space at each local destination.
	Free map[string]int64 `json:"free,omitempty"`
	// Warnings name what the database's account may not see and the backup
	// would therefore lack.
	Warnings []string `json:"warnings,omitempty"`
}

// String is what a person wants to know before.
func (e Estimate) String() string {
	return fmt.Sprintf("about %s of database and %d files of %s, at most %s as an archive",
		humanize.IBytes(uint64(e.DatabaseBytes)), e.Files, humanize.IBytes(uint64(e.FileBytes)), humanize.IBytes(uint64(e.Archive)))
}

// freeSpace is implemented by stores that know how much space they have.
type freeSpace interface{ Free() (int64, error) }

// sweeper is implemented by stores in which killed writers leave something.
type sweeper interface {
	Sweep(ctx context.Context, prefix string, before time.Time) (int, error)
}

// sweepAge is how old a leftover must be: no backup runs longer.
const sweepAge = 24 * time.Hour

// Estimate looks at the database's figures and lists the files.
func (h *Handler) Estimate(ctx context.Context, request Request) (Estimate, error) {
	var e Estimate
	if request.Database {
		n, err := h.databaseSize(ctx)
		if err != nil {
			return e, err
		}
		e.DatabaseBytes, e.Warnings = n, append(h.missingPrivileges(ctx), h.RestoreRights(ctx)...)
	}
	if request.Files {
		for _, set := range h.c.Files {
			for info, err := range set.Store.List(ctx, "") {
				if err != nil {
					return e, fmt.Errorf("listing the files of %s: %w", set.Label, err)
				}
				if h.wanted(set.Label + "/" + info.Key) {
					e.Files++
					e.FileBytes += info.Size
				}
			}
		}
	}
	// SQL packs to a third at worst; media do not pack.
	e.Archive = e.DatabaseBytes/3 + e.FileBytes + e.Files*1024
	for _, name := range h.chosen(request) {
		store, err := h.destination(name)
		if err != nil {
			return e, err
		}
		if s, ok := store.(freeSpace); ok {
			if e.Free == nil {
				e.Free = map[string]int64{}
			}
			if free, err := s.Free(); err == nil { // what keeps it from answering shows when something is written
				e.Free[name] = free
			}
		}
	}
	return e, nil
}

func (h *Handler) databaseSize(ctx context.Context) (int64, error) {
	query := database.Of(h.c.Site.DB).Choose(database.Variants{
		MySQL:      "SELECT CAST(COALESCE(SUM(data_length), 0) AS SIGNED) FROM information_schema.tables WHERE table_schema = DATABASE()",
		PostgreSQL: "SELECT pg_database_size(current_database())",
		SQLite:     "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
	})
	var sizes []int64
	if err := database.SelectStatistics(ctx, h.c.Site.DB, &sizes, query); err != nil || len(sizes) != 1 {
		return 0, fmt.Errorf("asking for the database's size: %w", err)
	}
	return sizes[0], nil
}

// check refuses what cannot work before anything is written: unknown
// destinations, and those without space or the right to write, which drop out.
// What the database's account may not see is named.
func (h *Handler) check(ctx context.Context, r *run) error {
	if err := checkTool(cmp.Or(r.request.Tool, h.c.Options.Tool)); err != nil {
		return jobs.Permanent(err)
	}
	e, err := h.Estimate(ctx, r.request)
	if err != nil {
		return err
	}
	r.estimate, r.total = e.Archive, e.DatabaseBytes+e.FileBytes
	r.progress(Step{0, r.total, e.String()})
	for _, w := range e.Warnings {
		r.warn("%s", w)
	}
	r.refused = map[string]error{}
	for _, name := range h.chosen(r.request) {
		if err := h.takes(ctx, name, e); err != nil {
			r.refused[name] = err
			r.warn("destination %s is left out: %v", name, err)
		}
	}
	if len(r.refused) == len(h.chosen(r.request)) {
		err := errNoDestination
		for i, name := range slices.Sorted(maps.Keys(r.refused)) {
			err = fmt.Errorf("%w%c %s: %w", err, ":;"[min(i, 1)], name, r.refused[name])
		}
		return err
	}
	return nil
}

// taking are the destinations that the archive is sent to.
func (r *run) taking() []string {
	return slices.DeleteFunc(slices.Clone(r.chosen(r.request)), func(name string) bool { return r.refused[name] != nil })
}

// takes says why a destination cannot take a backup of this size: it has no
// space, or nothing can be written there.
func (h *Handler) takes(ctx context.Context, name string, e Estimate) error {
	if free, known := e.Free[name]; known && free-e.Archive < h.c.Options.MinFree {
		return fmt.Errorf("%s has %d MiB of free space, and the backup may need %d MiB and must leave %d MiB: free some, or lower the retention",
			name, free>>20, e.Archive>>20, h.c.Options.MinFree>>20)
	}
	if err := h.checkQuota(ctx, name, e); err != nil {
		return err
	}
	store := h.c.Destinations[name]
	if _, own := store.(*Botble); own {
		return nil // its own first step is to write a mark
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.c.Options.StallTimeout, ErrStalled)
	defer cancel()
	probe := h.c.Options.Prefix + probeName
	if err := store.Put(ctx, probe, strings.NewReader("may be deleted\n"), storage.PutOptions{ExpectedSize: 15}); err != nil {
		return fmt.Errorf("nothing can be written there: %w", err)
	}
	if err := store.Delete(ctx, probe); err != nil {
		h.c.Logger.WarnContext(ctx, "backups cannot be deleted at a destination, so older ones stay",
			"event", "backup.delete_refused", "destination", name, "error", err)
	}
	return nil
}

// probeName is what shows that a destination can be written to; it is neither
// an archive nor a manifest file.
const probeName = "backup-rights.probe"

// sweep removes what killed backups left. That it fails is no reason not to
// make a backup.
func (h *Handler) sweep(ctx context.Context, r *run) {
	h.sweepQuietly(ctx)
	before := h.c.Now().Add(-sweepAge)
	for _, name := range h.chosen(r.request) {
		store := h.c.Destinations[name]
		if s, ok := store.(sweeper); ok {
			if n, err := s.Sweep(ctx, h.c.Options.Prefix, before); err != nil {
				r.warn("leftovers at %s could not be removed: %v", name, err)
			} else if n > 0 {
				jobs.Logf(ctx, "removed %d leftovers of killed backups at %s", n, name)
			}
		}
		if err := h.removeOrphans(ctx, store, before); err != nil {
			r.warn("archives without manifest files at %s could not be removed: %v", name, err)
		}
	}
}

// removeOrphans deletes old archives without a manifest file: their backup was
// killed before it could count.
func (h *Handler) removeOrphans(ctx context.Context, store storage.Store, before time.Time) error {
	archives, manifestFiles := map[string]string{}, map[string]bool{}
	for info, err := range store.List(ctx, h.c.Options.Prefix+"backup-") {
		if err != nil {
			return err
		}
		key, isArchive := ownArchive(h.c.Options.Prefix, info.Key)
		if isArchive && info.Modified.Before(before) {
			archives[key] = info.Key
		} else if !isArchive {
			manifestFiles[info.Key] = true
		}
	}
	for key, name := range archives {
		if !manifestFiles[key+manifestFileEnding] {
			if err := store.Delete(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// ownArchive is the key of the backup whose archive has a name.
func ownArchive(prefix, name string) (key string, ok bool) {
	base, _, _, ok := archive.Detect(name)
	return base, ok && strings.HasPrefix(base, prefix+"backup-") && !strings.Contains(strings.TrimPrefix(base, prefix), "/")
}
