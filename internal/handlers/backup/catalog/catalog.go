package catalog

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"sync"
	"time"

	"filippo.io/age"
	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Config is what a Catalog needs. DB, Destinations, Now and Logger are required.
type Config struct {
	// DB holds cmsjobs_backup*.
	DB           *sqlx.DB
	Destinations map[string]storage.Store
	// Prefix of archives' keys; a folder ends in "/".
	Prefix string
	// TrustedKeys are the public keys of other installations whose backups count as
	// our own.
	TrustedKeys []string
	// Recipients encrypt what goes into a repository; Identities open what is encrypted.
	Recipients []age.Recipient
	Identities []age.Identity
	// ManifestCache is a folder for the last manifest of each encrypted repository, where
	// no identity opens it: by that a backup tells what is unchanged.
	ManifestCache string
	// Unverified says that backups are not verified after they were made: then none
	// is due for it.
	Unverified bool
	// Running says whether a backup or a restore runs now, in any process.
	Running func(context.Context) (bool, error)
	Now     func() time.Time
	Logger  *slog.Logger
}

// Catalog knows the backups at every destination.
type Catalog struct {
	config Config

	keyMu sync.Mutex
	key   ed25519.PrivateKey // nil until it is read
}

// New makes a Catalog.
func New(config Config) *Catalog { return &Catalog{config: config} }
