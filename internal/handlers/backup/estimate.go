package backup

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/cmsjobs/cmsjobs/internal/database"
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
		humanize.IBytes(uint64(e.DatabaseBytes)), e.Files, humanize.IBytes(uint64(e.FileBytes)),
		humanize.IBytes(uint64(e.Archive)))
}

// freeSpace is implemented by stores that know how much space they have.
type freeSpace interface{ Free() (int64, error) }

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
		store, err := h.Destination(name)
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
		MySQL: "SELECT CAST(COALESCE(SUM(data_length), 0) AS SIGNED) FROM information_schema.tables WHERE " +
			"table_schema = DATABASE()",
		PostgreSQL: "SELECT pg_database_size(current_database())",
		SQLite:     "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
	})
	var sizes []int64
	if err := database.SelectStatistics(ctx, h.c.Site.DB, &sizes, query); err != nil || len(sizes) != 1 {
		return 0, fmt.Errorf("asking for the database's size: %w", err)
	}
	return sizes[0], nil
}
