package manifest

import (
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
)

// Version of archives; readers refuse later ones.
const Version = 1

// names of the entries that are no content.
const (
	HeaderEntry    = "cmsjobs-backup.json"
	LastEntry      = "manifest.json"
	DatabaseFolder = "database/"
	RoutinesFolder = "routines/"
	FilesFolder    = "files/"
	ListFolder     = "manifest/"
)

// Status says what a backup is worth.
type Status string

// The statuses of a backup.
const (
	Running  Status = "running"
	Complete Status = "complete" // everything that was asked for is in it
	Partial  Status = "partial"  // the database or files are missing: never counted as complete
	Failed   Status = "failed"   // there is no archive, or its newest verification failed
)

// Header is the first entry of an archive.
type Header struct {
	Format   int       `json:"format"`
	ID       string    `json:"id"`
	Name     string    `json:"name,omitempty"`
	Tool     string    `json:"tool"`
	Started  time.Time `json:"started"`
	Site     string    `json:"site,omitempty"`
	Engine   string    `json:"engine,omitempty"` // mysql, postgres, sqlite
	Database bool      `json:"database"`
	Files    bool      `json:"files"`
}

// Manifest is the last entry of an archive.
type Manifest struct {
	Header
	Status   Status        `json:"status"`
	Finished time.Time     `json:"finished"`
	Dump     *dump.Summary `json:"dump,omitempty"`
	// DatabaseError says why the database part is missing or torn.
	DatabaseError string `json:"database_error,omitempty"`
	// Parts are the entries of the database part.
	Parts     []Part   `json:"parts,omitempty"`
	FileCount int64    `json:"file_count"`
	FileBytes int64    `json:"file_bytes"`
	Warnings  []string `json:"warnings,omitempty"`
}

// Part is one entry of the database part.
type Part struct {
	Name   string `json:"name"`
	Table  string `json:"table,omitempty"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// PackedFile is one line of a list of files.
type PackedFile struct {
	Name     string    `json:"name"` // LABEL/PATH
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	SHA256   string    `json:"sha256"`
}
