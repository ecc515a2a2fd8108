package manifest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/portable"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// MaxSize bounds what is read of a manifest file: 5,000 tables need half a MiB.
const MaxSize = 16 << 20

// Ending is put after a backup's key.
const Ending = ".json"

func ReadFile(ctx context.Context, store storage.Store, key string) (File, error) {
	var side File
	body, info, err := store.Open(ctx, key)
	if err != nil {
		return side, err
	}
	defer body.Close()
	var data bytes.Buffer
	data.Grow(int(min(max(info.Size, 0), MaxSize)) + bytes.MinRead)
	if _, err := data.ReadFrom(io.LimitReader(body, MaxSize)); err != nil {
		return side, err
	}
	if err := json.Unmarshal(data.Bytes(), &side); err != nil {
		return side, fmt.Errorf("%s is no manifest file of a backup: %w", key, err)
	}
	// What a manifest file says must be about the archive beside it.
	if side.Format > Version || path.Dir(side.Archive) != path.Dir(key) ||
		!strings.HasPrefix(side.Archive, strings.TrimSuffix(key, Ending)+".") {
		return side, fmt.Errorf("%s does not describe the archive beside it, or is of a later version", key)
	}
	if side.Made != Complete && side.Made != Partial {
		return side, fmt.Errorf("%s does not say whether its backup was made completely", key)
	}
	side.Settle(side.Verification)
	return side, nil
}

// Settle sets what the newest verification makes of a backup: one whose newest verification
// failed is failed, whatever it was made as.
func (s *File) Settle(p *VerificationSummary) {
	s.Verification, s.Status = p, s.Made
	if p != nil && !p.OK {
		s.Status = Failed
	}
}

// Reason says what is wrong with a backup that is not complete.
func (s File) Reason() string {
	if s.Status == Failed && s.Verification != nil {
		return fmt.Sprintf("its newest verification (%s, %s UTC) failed: %s", s.Verification.Level,
			s.Verification.At.UTC().Format(time.DateTime), s.Verification.Problem)
	}
	return s.Error
}

func WriteFile(ctx context.Context, s storage.Store, key string, side File) error {
	data, err := json.MarshalIndent(side, "", "  ")
	if err != nil {
		return err
	}
	return s.Put(ctx, key+Ending, bytes.NewReader(data), storage.PutOptions{ContentType: "application/json",
		ExpectedSize: int64(len(data))})
}

// File is KEY.json beside an archive: what can be known without opening
// it. It is written last, so that an archive without one is no backup. It is
// written again when the archive was read back.
type File struct {
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
	// Repository says where the files are that the archive does not hold; nil when it
	// holds all.
	Repository *InRepository `json:"repository,omitempty"`
	// Needs is what the dump needs of the server that takes it; nil when unknown.
	Needs *portable.Needs `json:"needs,omitempty"`
	// Log is where the binary log stood at the dump's snapshot; nil when unknown.
	Log   *LogStart `json:"log,omitempty"`
	Error string    `json:"error,omitempty"`
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

// LogStart is where a replay of the binary log begins that follows a dump.
type LogStart struct {
	dump.LogPosition
	Snapshot time.Time `json:"snapshot"` // the server's clock
}

// InRepository names the files of a backup, and the parts of its database, in the repository
// at its destination.
type InRepository struct {
	ID string `json:"id"` // of the repository
	// Backup is the name of the record. It has the SHA-256 of the record, and the record
	// those of all objects: what is signed here signs every byte.
	Backup string `json:"backup"`
	Run    string `json:"run"`   // names the objects that the backup added
	Added  int64  `json:"added"` // bytes that the repository grew by
	// DatabaseBytes is what the parts of the database take, packed, where they are in the
	// repository too; 0 where they are in the archive.
	DatabaseBytes int64 `json:"database_bytes,omitempty"`
}

// TableFigure is one table's size, to be compared from backup to backup.
type TableFigure struct {
	Name string `json:"name"`
	Rows int64  `json:"rows"`
}
