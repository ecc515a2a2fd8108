package backup

import (
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/portable"
)

// formatVersion of archives; readers refuse later ones.
const formatVersion = 1

// names of the entries that are no content.
const (
	headerName     = "cmsjobs-backup.json"
	manifestName   = "manifest.json"
	databaseFolder = "database/"
	routinesFolder = "routines/"
	filesFolder    = "files/"
	listFolder     = "manifest/"
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

// File is one line of a list of files.
type File struct {
	Name     string    `json:"name"` // LABEL/PATH
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	SHA256   string    `json:"sha256"`
}

// ManifestFile is KEY.json beside an archive: what can be known without opening
// it. It is written last, so that an archive without one is no backup. It is
// written again when the archive was read back.
type ManifestFile struct {
	Header
	// Status is Made, or Failed when the newest verification failed.
	Status Status `json:"status"`
	// Made is Complete or Partial: what the archive was made as.
	Made      Status        `json:"made"`
	Finished  time.Time     `json:"finished"`
	Archive   string        `json:"archive"` // key of the archive
	Size      int64         `json:"size"`
	SHA256    string        `json:"sha256"`
	Encrypted bool          `json:"encrypted"`
	Tables    []TableFigure `json:"tables,omitempty"`
	Rows      int64         `json:"rows"`
	FileCount int64         `json:"file_count"`
	FileBytes int64         `json:"file_bytes"`
	Schema    string        `json:"schema,omitempty"`
	// Needs is what the dump needs of the server that takes it; nil when unknown.
	Needs *portable.Needs `json:"needs,omitempty"`
	Error string          `json:"error,omitempty"`
	// Limited is true when only some tables were asked for.
	Limited bool `json:"limited,omitempty"`
	// Safety is true for what was made before a restore: perhaps of a site that
	// was broken, and so never the newest one to restore.
	Safety   bool     `json:"safety,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Verification is the newest verification of this copy; nil when it was never read back.
	Verification *VerificationSummary `json:"verification,omitempty"`
	// SignedBy is the public key of the installation that made the backup, and
	// Signature its signature of what is said here, except Status, Verification and
	// Warnings.
	SignedBy  string `json:"signed_by,omitempty"`
	Signature string `json:"signature,omitempty"`
}

// TableFigure is one table's size, to be compared from backup to backup.
type TableFigure struct {
	Name string `json:"name"`
	Rows int64  `json:"rows"`
}
