package media

import (
	"encoding/json"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
)

// recordKey is the one key of media_files.options that is ours.
const recordKey = "cmsjobs"

// Record is what is known of a processed picture, in media_files.options under
// "cmsjobs".
type Record struct {
	// Source is the original that was processed, Plan a digest of what was asked
	// for: the same two again mean that there is nothing to do.
	Source Source `json:"source"`
	Plan   string `json:"plan,omitempty"`
	// Width and Height as viewers show the original.
	Width  int    `json:"width,omitempty"`
	Height int    `json:"height,omitempty"`
	Format string `json:"format,omitempty"`
	Frames int    `json:"frames,omitempty"`
	// Partial says that the file ends early.
	Partial bool `json:"partial,omitempty"`
	// Sizes are the renditions by name ("thumb", "thumb.webp", "w640").
	Sizes map[string]RenditionRecord `json:"sizes,omitempty"`
	// BlurHash and Placeholder (a data URI) stand in while a page loads.
	BlurHash    string     `json:"blurhash,omitempty"`
	Placeholder string     `json:"placeholder,omitempty"`
	ProcessedAt *time.Time `json:"processed_at,omitempty"`
	// Error is set when all attempts failed, and taken away by a success.
	Error    string     `json:"error,omitempty"`
	FailedAt *time.Time `json:"failed_at,omitempty"`
}

// Source tells one version of an original from another.
type Source struct {
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// RenditionRecord is one file that was made.
type RenditionRecord struct {
	URL    string `json:"url"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Bytes  int    `json:"bytes"`
	MIME   string `json:"mime"`
	// NotKept says that the file would be larger than the one it is a copy of, and is not
	// there: URL and Bytes are empty.
	NotKept bool `json:"not_kept,omitempty"`
}

// ReadRecord finds our record in a row's options; ok is false without one.
func ReadRecord(options string) (r Record, ok bool) {
	var outer struct {
		Record *Record `json:"cmsjobs"`
	}
	if json.Unmarshal([]byte(options), &outer) != nil || outer.Record == nil {
		return Record{}, false
	}
	return *outer.Record, true
}

// focusOf finds the focal point that an editor set: options.focus with x and y
// from 0 to 1.
func focusOf(options string) *picture.Point {
	var outer struct {
		Focus *struct{ X, Y *float64 } `json:"focus"`
	}
	if json.Unmarshal([]byte(options), &outer) != nil || outer.Focus == nil || outer.Focus.X == nil ||
		outer.Focus.Y == nil {
		return nil
	}
	p := picture.Point{X: *outer.Focus.X, Y: *outer.Focus.Y}
	if !(p.X >= 0 && p.X <= 1 && p.Y >= 0 && p.Y <= 1) {
		return nil
	}
	return &p
}
