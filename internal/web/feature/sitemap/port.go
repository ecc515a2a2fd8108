package sitemap

import (
	"context"
	"time"
)

// Port shows the files of the sitemap and what was submitted to IndexNow.
type Port interface {
	SitemapStatus(ctx context.Context) (SitemapStatus, error)
}

// SitemapStatus is the map as the last run published it. Files are the first
// 200 of FileCount, the index before all others.
type SitemapStatus struct {
	Target      string        `json:"target,omitempty"` // folder:PATH, bucket:NAME, cache:KEY
	FileCount   int           `json:"file_count"`
	URLs        int           `json:"urls"`
	PublishedAt time.Time     `json:"published_at,omitzero"`
	Files       []SitemapFile `json:"files"`
	Submissions []Submission  `json:"submissions"`
}

// SitemapFile is one file of the sitemap. Modified is the newest change of what
// it lists, zero where that is not known.
type SitemapFile struct {
	Name     string    `json:"name"`
	URLs     int       `json:"urls"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified,omitzero"`
}

// Submission is one call of IndexNow.
type Submission struct {
	At     time.Time `json:"at"`
	Host   string    `json:"host"`
	URLs   int       `json:"urls"`
	Status int       `json:"status"` // of HTTP; 0 when nothing was sent
	Failed bool      `json:"failed,omitempty"`
	Note   string    `json:"note,omitempty"`
}
type handlers struct{ port Port }
