package catalog

import (
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
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

// Summary implements jobs.Summarizer.
func (r Report) Summary() (s phrase.Summary) {
	switch r.Status {
	case manifest.Complete:
		s.Say("The backup %s is complete.", r.ID)
	case manifest.Partial:
		s.Say("The backup %s is partial.", r.ID)
	default:
		s.Say("The backup %s failed.", r.ID)
	}
	s.Say("It holds %s {table|tables} with %s {row|rows} and %s {file|files}; the archive has %s. It took %s.",
		r.Tables, r.Rows, r.Files, phrase.Size(r.Size), r.Finished.Sub(r.Started))
	if r.DatabaseError != "" {
		s.Say("The database: %s", r.DatabaseError)
	}
	if r.FilesError != "" {
		s.Say("The files: %s", r.FilesError)
	}
	if r.Error != "" {
		s.Say("The error: %s", r.Error)
	}
	phrase.Count(&s, len(r.Pruned), "%s older {backup was|backups were} removed.")
	if v := r.Verification; v != nil {
		v.SayTo(&s)
	}
	phrase.List(&s, phrase.Columns("Destination", "Error"), r.Outcomes, func(o Outcome) []any {
		return []any{o.Destination, o.Error}
	})
	phrase.Lines(&s, phrase.Columns("Warning"), r.Warnings)
	return s
}
