package media

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// ProcessImage makes the thumbnails of one picture: 3 attempts,
// 30, 60 and 120 seconds apart, 5 minutes each, four at once in the whole fleet.
var ProcessImage = jobs.Kind[ProcessImagePayload]{
	Name: "media.processImage",
	Policy: jobs.Policy{
		MaxAttempts: 3,
		Backoff:     jobs.Steps(30*time.Second, 60*time.Second, 120*time.Second),
		Timeout:     5 * time.Minute,
		// The other slots of a fleet are left to mail and all else when a
		// thousand pictures are uploaded at once.
		Limit: 4,
	},
}

// ID is a row's id. PHP writes it as a number or as a string.
type ID string

// AlsoReads implements schema.AlsoReader.
func (ID) AlsoReads() string { return "integer" }

// UnmarshalJSON takes 12, "12", "01J…" and null.
func (id *ID) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*id = ID(s)
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(data, &n); err != nil {
		return errors.New("mediaFileId is neither a number nor a string")
	}
	*id = ID(n)
	return nil
}

// ProcessImagePayload names a row of media_files, by its id or by its path.
type ProcessImagePayload struct {
	MediaFileID ID `json:"mediaFileId,omitempty" example:"17" synonyms:"mediaId,fileId"`
	// FilePath is the row's URL, with or without "/storage/" before it. It is
	// used where there is no id.
	FilePath string `json:"filePath,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
	// Force makes all renditions again.
	Force bool `json:"force,omitempty" default:"false"`
}

// Bounds of what a payload may name.
const (
	maxID   = 64
	maxPath = 2048
)

// Validate refuses a payload that names nothing, or what no row can have.
func (p *ProcessImagePayload) Validate() error {
	id := string(p.MediaFileID)
	switch {
	case (id == "" || id == "0") && p.FilePath == "":
		return phrase.Errorf("it has neither mediaFileId nor filePath")
	case len(id) > maxID || strings.Trim(id, "-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
		return phrase.Errorf("mediaFileId %.40q is no number, UUID or ULID", id)
	case len(p.FilePath) > maxPath || strings.ContainsAny(p.FilePath, "\x00\\"):
		return phrase.Errorf("filePath %.80q is too long or holds a NUL or a backslash", p.FilePath)
	case slices.Contains(strings.Split(p.FilePath, "/"), ".."):
		return phrase.Errorf("filePath %.80q leaves the uploads", p.FilePath)
	}
	return nil
}
