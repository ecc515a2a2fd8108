package backups

import (
	"context"
	"io"
	"time"
)

// Port shows backup archives. Making one is enqueuing backup.generate.
// Errors that wrap web.ErrUnavailable name the destination and why it does not
// answer.
type Port interface {
	// Backups are those at all destinations. Where some are unavailable, the error
	// wraps web.ErrUnavailable and the list has what the others hold.
	Backups(ctx context.Context) ([]Backup, error)
	OpenBackup(ctx context.Context, id string) (io.ReadCloser, Backup, error)
	DeleteBackup(ctx context.Context, id string) error
}

// Backup is one archive.
type Backup struct {
	ID        string    `json:"id"` // its file name
	Size      int64     `json:"size"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	// Status is complete, partial or failed; a backup whose newest verification failed
	// is failed.
	Status string `json:"status"`
	// Usable is true when a restore takes it without further consent: it is
	// complete, verified or not yet due for it, and of a known origin.
	Usable bool `json:"usable"`
	// Origin is own, trusted, unknown or altered.
	Origin      string     `json:"origin"`
	Database    bool       `json:"database"`
	Encrypted   bool       `json:"encrypted"`
	Destination string     `json:"destination"`
	VerifiedAt  *time.Time `json:"verified_at,omitempty"`
	// Verification is what the newest verification found.
	Verification string `json:"verification,omitempty"`
	// KeptUntil is when retention deletes it, if one backup of everything is made
	// each day; absent when it does not. Kept says what keeps it, "" when nothing does.
	KeptUntil *time.Time `json:"kept_until,omitempty"`
	Kept      string     `json:"kept,omitempty"`
	Tables    int        `json:"tables"`
	Files     int        `json:"files"`
}
type handlers struct{ port Port }
