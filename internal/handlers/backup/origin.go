package backup

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

// ErrUntrusted says that this installation never made a backup.
var ErrUntrusted = errors.New("this installation never made this backup")

const (
	signingKey = "signing"
)

// PublicKey is the key by which other installations know this one's backups.
func (h *Handler) PublicKey(ctx context.Context) (string, error) {
	s, err := h.signer(ctx)
	if err != nil {
		return "", err
	}
	return s.PublicKey(), nil
}

// signer reads the installation's key, and makes it the first time.
func (h *Handler) signer(ctx context.Context) (manifest.Signer, error) {
	h.keyMu.Lock()
	defer h.keyMu.Unlock()
	s := manifest.Signer{Private: h.key, Trusted: h.c.Options.TrustedKeys}
	if h.key != nil {
		return s, nil
	}
	_, fresh, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return s, err
	}
	read := func() (text string, err error) {
		var found []string
		err = h.c.DB.SelectContext(ctx, &found, h.c.DB.Rebind("SELECT private_key FROM cmsjobs_backup_keys WHERE name = ?"), signingKey)
		return strings.Join(found, ""), err
	}
	text, err := read()
	if err == nil && text == "" {
		if err = h.saveKey(ctx, h.c.DB, fresh); err == nil {
			text, err = read() // another process may have been first
		}
	}
	if err != nil {
		return s, fmt.Errorf("reading the key that signs backups: %w", err)
	}
	seed, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(seed) != ed25519.SeedSize {
		return s, errors.New("the key that signs backups (cmsjobs_backup_keys) is damaged: delete its row, then a new one is made, " +
			"and add the old public key to backup.trusted_keys")
	}
	h.key = ed25519.NewKeyFromSeed(seed)
	s.Private = h.key
	return s, nil
}

// saveKey writes a key into a database that has none.
func (h *Handler) saveKey(ctx context.Context, db *sqlx.DB, key ed25519.PrivateKey) error {
	insert := database.Of(db).InsertIgnore("cmsjobs_backup_keys", "name, private_key, made_at", "(?, ?, ?)")
	_, err := db.ExecContext(ctx, db.Rebind(insert), signingKey, base64.StdEncoding.EncodeToString(key.Seed()), h.c.Now().UnixMilli())
	return err
}

// carryKey puts the key into what a restore made of the site's own database:
// dumps do not hold it, and without it our own backups would be strangers.
func (h *Handler) carryKey(ctx context.Context, q RestoreRequest) error {
	s, err := h.signer(ctx)
	if err != nil {
		return err
	}
	switch {
	case q.Backup.Engine == database.SQLite:
		db, err := sqlx.Open("sqlite", "file:"+(&url.URL{Path: q.IntoDSN}).EscapedPath())
		if err != nil {
			return err
		}
		defer db.Close()
		var n int
		if err := db.GetContext(ctx, &n, "SELECT COUNT(*) FROM sqlite_master WHERE name = 'cmsjobs_backup_keys'"); err != nil || n == 0 {
			return err
		}
		return h.saveKey(ctx, db, s.Private)
	case q.Backup.Engine == database.PostgreSQL && q.IntoDSN == "":
		return h.saveKey(ctx, h.c.DB, s.Private)
	}
	return nil
}

// untrusted says what is wrong with a backup's origin; "" when it is known.
func (b Stored) untrusted() string {
	switch {
	case b.Origin == manifest.Altered:
		return "THIS BACKUP WAS ALTERED: what its manifest file says is not what was signed or recorded when it was made"
	case b.Origin == manifest.Unknown && b.SignedBy != "":
		return "THIS INSTALLATION NEVER MADE THIS BACKUP. It is signed by an unknown key, " + b.SignedBy +
			"; if that is the key of your old server, set backup.trusted_keys"
	case b.Origin == manifest.Unknown:
		return "THIS INSTALLATION NEVER MADE THIS BACKUP, and it is not signed. " +
			"Anyone who can write to the backup storage may have put it there"
	}
	return ""
}

// originOf judges one backup at the moment when it is to be restored.
func (h *Handler) originOf(ctx context.Context, side manifest.File) (manifest.Origin, error) {
	s, err := h.signer(ctx)
	if err != nil {
		return manifest.Unknown, err
	}
	recorded, err := h.recorded(ctx, side.ID)
	if err != nil {
		return manifest.Unknown, err
	}
	return s.Judge(side.SignatureKey(), side.SHA256, recorded), nil
}

// recorded is the archive's hash as it was when the backup was made; "" when
// this database does not know the backup.
func (h *Handler) recorded(ctx context.Context, id string) (string, error) {
	var sums []string
	err := h.c.DB.SelectContext(ctx, &sums, h.c.DB.Rebind("SELECT archive_sha256 FROM cmsjobs_backups WHERE id = ?"), id)
	if err != nil || len(sums) == 0 {
		return "", err
	}
	return sums[0], nil
}
