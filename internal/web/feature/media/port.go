package media

import (
	"context"
)

// Port shows what is missing among the thumbnails.
type Port interface {
	MediaStatus(ctx context.Context) (MediaStatus, error)
	// Regenerate enqueues thumbnails for all pictures, or only the missing ones.
	Regenerate(ctx context.Context, onlyMissing bool) (int, error)
}

// MediaStatus counts pictures.
type MediaStatus struct {
	Pictures int64    `json:"pictures"`
	Missing  int64    `json:"missing"`
	Lost     int64    `json:"lost"`               // the original is not on disk
	Examples []string `json:"examples,omitempty"` // some that are missing
}
type handlers struct{ port Port }
