package catalog

import (
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

// Report is what became of a backup.
type Report struct {
	ID       string          `json:"id"`
	Name     string          `json:"name,omitempty"`
	By       string          `json:"by,omitempty"`
	Source   string          `json:"source,omitempty"`
	Status   manifest.Status `json:"status"`
	Started  time.Time       `json:"started"`
	Finished time.Time       `json:"finished"`
	Archive  string          `json:"archive,omitempty"` // key
	Size     int64           `json:"size"`
	SHA256   string          `json:"sha256,omitempty"`
	Tables   int             `json:"tables"`
	Rows     int64           `json:"rows"`
	Files    int64           `json:"files"`
	// FileBytes before compression.
	FileBytes int64 `json:"file_bytes"`
	// Stored are the bytes by which the repositories at all destinations grew.
	Stored        int64     `json:"stored,omitempty"`
	DatabaseError string    `json:"database_error,omitempty"`
	FilesError    string    `json:"files_error,omitempty"`
	Error         string    `json:"error,omitempty"`
	Outcomes      []Outcome `json:"destinations"`
	Warnings      []string  `json:"warnings,omitempty"`
	// Verification is what reading it back showed, where that was done.
	Verification *manifest.Verification `json:"verification,omitempty"`
	// Pruned are the older backups that retention removed.
	Pruned []string `json:"pruned,omitempty"`
}

// Outcome is what became of a backup at one destination.
type Outcome struct {
	Destination string `json:"destination"`
	Location    string `json:"location,omitempty"`
	Error       string `json:"error,omitempty"`
	// Copied is true when the first try failed and the archive was copied from
	// another destination afterwards.
	Copied bool `json:"copied,omitempty"`
}

// Step is how far a backup, a verification or a restore is.
type Step struct {
	Done, Total int64 // bytes; Total 0 when unknown, else an estimate
	Note        string
}
