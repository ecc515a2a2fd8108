package usage

import (
	"context"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// Port shows what takes space on disk and in the database: caches, logs,
// tables.
type Port interface {
	StorageUsage(ctx context.Context) ([]UsageItem, error)
}

// SizeHistory is a Growth that knows how sizes were on other days.
type SizeHistory interface {
	// SizesSince lists days, oldest first; days on which nothing was measured are
	// not among them.
	SizesSince(ctx context.Context, since time.Time) ([]SizeDay, error)
}

// SizeDay is how much space folders and tables took on a day.
type SizeDay struct {
	Day          string // 2006-01-02
	Disk, Tables int64
	Parts        map[string]int64 // by UsageItem.Class
}

// Disk is a Port that knows what the site's disk has left.
type Disk interface {
	Free(ctx context.Context) (int64, error)
}

// UsageItem is one folder or table and its size.
type UsageItem struct {
	Name  string `json:"name"`
	Class string `json:"part"` // "cache", "logs", "table", "media", "backup"
	Bytes int64  `json:"bytes"`
	Rows  int64  `json:"rows"` // or files
}

// UsageList is the answer of the API.
type UsageList = ops.Items[UsageItem]
type handlers struct{ port Port }
