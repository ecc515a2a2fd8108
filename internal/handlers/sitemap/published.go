package sitemap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
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
	sorted := slices.SortedStableFunc(slices.Values(files), func(a, b file) int {
		return indexFirst(a.name) - indexFirst(b.name)
	})
	p := Published{Result: r}
	for _, f := range sorted[:min(len(sorted), maxListed)] {
		p.Listed = append(p.Listed, PublishedFile{f.name, f.urls, f.bytes, f.modified})
	}
	return p
}

// Published tells of the map as it is now: the zero value when there is none.
// It reads what the last run noted and looks whether the index is still there.
func (h *Handler) Published(ctx context.Context) (p Published, err error) {
	last, err := h.recall(ctx, h.target.String())
	if err != nil || last.sum == "" {
		return p, err
	}
	if there, err := h.indexThere(ctx); err != nil || !there {
		return p, err
	}
	if err := json.Unmarshal([]byte(last.summary), &p); err != nil {
		return Published{}, fmt.Errorf("reading what the last sitemap's run noted: %w", err)
	}
	p.At = last.at
	return p, nil
}

// Addresses are those of all that is public in the CMS, whether a map lists them already
// or not. Where the CMS wants no sitemap there are none.
func (h *Handler) Addresses(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		p, err := h.plan(ctx)
		if err != nil {
			yield("", err)
			return
		}
		for i := 0; p.enabled && i < len(p.groups); i++ {
			err := h.stream(ctx, p, &p.groups[i], func(*cms.RowError) {}, func(e *entry) error {
				if !yield(e.loc, nil) {
					return errEnough
				}
				return nil
			})
			if errors.Is(err, errEnough) {
				return
			}
			if err != nil {
				yield("", err)
				return
			}
		}
	}
}
