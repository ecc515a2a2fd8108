package sitemap

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Published is the map that the last run put into the target. The run's Removed
// and Skipped are not kept.
type Published struct {
	Result
	At time.Time `json:"-"`
	// Listed are its files, the first maxListed of them: the index comes first.
	Listed []PublishedFile `json:"listed"`
}

// PublishedFile is one file of the map. URLs is 0 for the index and the style
// sheet; Modified, the newest change in it, is zero where no row tells one.
type PublishedFile struct {
	Name     string    `json:"name"`
	URLs     int       `json:"urls"`
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified,omitzero"`
}

// maxListed keeps the list in its column, whose 64 KiB are also the result's.
const maxListed = 200

// noteOf is what is remembered of a run: without the lists that may be long,
// which the job's result has.
func noteOf(r Result, files []file) Published {
	r.Removed, r.Skipped = nil, nil
	p := Published{Result: r, Listed: make([]PublishedFile, 0, min(len(files), maxListed))}
	for _, index := range []bool{true, false} {
		for _, f := range files {
			if (indexFirst(f.name) == 0) == index && len(p.Listed) < maxListed {
				p.Listed = append(p.Listed, PublishedFile{f.name, f.urls, f.bytes, f.modified})
			}
		}
	}
	return p
}

// Published tells of the map as it is now: the zero value when there is none.
// It reads what the last run noted and looks whether the index is still there.
func (h *Handler) Published(ctx context.Context) (p Published, err error) {
	var summary string
	var millis int64
	query := h.db.Rebind("SELECT summary, generated_at FROM cmsjobs_sitemap_state WHERE target = ?")
	err = h.db.QueryRowContext(ctx, query, stateKey(h.target.String())).Scan(&summary, &millis)
	if errors.Is(err, sql.ErrNoRows) {
		return p, nil
	}
	if err != nil {
		return p, fmt.Errorf("reading the last sitemap's state: %w", err)
	}
	if err := json.Unmarshal([]byte(summary), &p); err != nil {
		return Published{}, fmt.Errorf("reading what the last sitemap's run noted: %w", err)
	}
	p.At = time.UnixMilli(millis).UTC()
	index, err := h.target.open(ctx, indexName)
	if errors.Is(err, fs.ErrNotExist) {
		return Published{}, nil // somebody removed it
	}
	if err != nil {
		return p, fmt.Errorf("looking at the sitemap: %w", err)
	}
	return p, index.Close()
}
