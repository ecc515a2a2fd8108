package catalog

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

const signingKey = "signing"

// PublicKey is the key by which other installations know this one's backups.
func (c *Catalog) PublicKey(ctx context.Context) (string, error) {
	s, err := c.Signer(ctx)
	if err != nil {
		return "", err
	}
	return s.PublicKey(), nil
}

// Signer reads the installation's key, and makes it the first time.
func (c *Catalog) Signer(ctx context.Context) (manifest.Signer, error) {
	c.keyMu.Lock()
	defer c.keyMu.Unlock()
	s := manifest.Signer{Private: c.key, Trusted: c.config.TrustedKeys}
	if c.key != nil {
		return s, nil
	}
	_, fresh, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return s, err
	}
	read := func() (text string, err error) {
		var found []string
		err = c.config.DB.SelectContext(ctx, &found, c.config.DB.Rebind("SELECT private_key FROM cmsjobs_backup_keys "+
			"WHERE name = ?"), signingKey)
		return strings.Join(found, ""), err
	}
	text, err := read()
	if err == nil && text == "" {
		if err = c.saveKey(ctx, c.config.DB, fresh); err == nil {
			text, err = read() // another process may have been first
		}
	}
	if err != nil {
		return s, fmt.Errorf("reading the key that signs backups: %w", err)
	}
	seed, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(seed) != ed25519.SeedSize {
		return s, errors.New("the key that signs backups (cmsjobs_backup_keys) is damaged: delete its row, then a " +
			"new one is made, " +
			"and add the old public key to backup.trusted_keys")
	}
	c.key = ed25519.NewKeyFromSeed(seed)
	s.Private = c.key
	return s, nil
}

// CarryKey writes the installation's key into a database that has none.
func (c *Catalog) CarryKey(ctx context.Context, db *sqlx.DB) error {
	s, err := c.Signer(ctx)
	if err != nil {
		return err
	}
	return c.saveKey(ctx, db, s.Private)
}

// saveKey writes a key into a database that has none.
func (c *Catalog) saveKey(ctx context.Context, db *sqlx.DB, key ed25519.PrivateKey) error {
	insert := database.Of(db).InsertIgnore("cmsjobs_backup_keys", "name, private_key, made_at", "(?, ?, ?)")
	_, err := db.ExecContext(ctx, db.Rebind(insert), signingKey, base64.StdEncoding.EncodeToString(key.Seed()),
		c.config.Now().UnixMilli())
	return err
}

// OriginOf judges one backup at the moment when it is to be restored.
func (c *Catalog) OriginOf(ctx context.Context, side manifest.File) (manifest.Origin, error) {
	s, err := c.Signer(ctx)
	if err != nil {
		return manifest.Unknown, err
	}
	recorded, err := c.RecordedSum(ctx, side.ID)
	if err != nil {
		return manifest.Unknown, err
	}
	return s.Judge(side.SignatureKey(), side.SHA256, recorded), nil
}

// RecordedSum is the archive's hash as it was when the backup was made; "" when
// this database does not know the backup.
func (c *Catalog) RecordedSum(ctx context.Context, id string) (string, error) {
	var sums []string
	err := c.config.DB.SelectContext(ctx, &sums, c.config.DB.Rebind("SELECT archive_sha256 FROM cmsjobs_backups "+
		"WHERE id = ?"), id)
	if err != nil || len(sums) == 0 {
		return "", err
	}
	return sums[0], nil
}
