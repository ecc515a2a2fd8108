package backup

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// Origin says who made a backup.
type Origin string

// The origins of a backup.
const (
	Own     Origin = "own"     // this installation: by its signature
	Trusted Origin = "trusted" // an installation whose key is among Options.TrustedKeys
	Unknown Origin = "unknown" // nobody that is known: not signed, or by an unknown key
	Altered Origin = "altered" // the signature or the recorded hash is of another backup
)

func (o Origin) foreign() bool { return o != Own && o != Trusted }

// ErrUntrusted says that this installation never made a backup.
var ErrUntrusted = errors.New("this installation never made this backup")

const (
	keyScheme   = "ed25519:"
	signingKey  = "signing"
	signContext = "cmsjobs backup manifest 1\n"
)

// signer is what signs manifest files and knows signatures.
type signer struct {
	private ed25519.PrivateKey
	trusted []string
}

func (s signer) own() string {
	return keyScheme + base64.StdEncoding.EncodeToString(s.private.Public().(ed25519.PublicKey))
}

// CheckKey says what is wrong with the text of a public key.
func CheckKey(text string) error {
	_, err := parseKey(text)
	return err
}

func parseKey(text string) (ed25519.PublicKey, error) {
	encoded, is := strings.CutPrefix(text, keyScheme)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !is || err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%.80q is no public key: cmsjobs backup key prints one (ed25519:…)", text)
	}
	return key, nil
}

// PublicKey is the key by which other installations know this one's backups.
func (h *Handler) PublicKey(ctx context.Context) (string, error) {
	s, err := h.signer(ctx)
	if err != nil {
		return "", err
	}
	return s.own(), nil
}

// signer reads the installation's key, and makes it the first time.
func (h *Handler) signer(ctx context.Context) (signer, error) {
	h.keyMu.Lock()
	defer h.keyMu.Unlock()
	s := signer{private: h.key, trusted: h.c.Options.TrustedKeys}
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
	s.private = h.key
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
	case q.Backup.Engine == sqliteEngine:
		db, err := sqlx.Open("sqlite", "file:"+(&url.URL{Path: q.IntoDSN}).EscapedPath())
		if err != nil {
			return err
		}
		defer db.Close()
		var n int
		if err := db.GetContext(ctx, &n, "SELECT COUNT(*) FROM sqlite_master WHERE name = 'cmsjobs_backup_keys'"); err != nil || n == 0 {
			return err
		}
		return h.saveKey(ctx, db, s.private)
	case q.Backup.Engine == postgresEngine && q.IntoDSN == "":
		return h.saveKey(ctx, h.c.DB, s.private)
	}
	return nil
}

// signed is what a signature is about: everything that a manifest file says when it
// is made. Where the archive lies is not part of it.
func (s ManifestFile) signed() ([]byte, error) {
	s.Status, s.Verification, s.Warnings, s.Signature = "", nil, nil, ""
	s.Archive = path.Base(s.Archive)
	data, err := json.Marshal(s)
	return append([]byte(signContext), data...), err
}

// sign signs a manifest file.
func (s signer) sign(side *ManifestFile) error {
	side.SignedBy = s.own()
	data, err := side.signed()
	if err != nil {
		return err
	}
	side.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(s.private, data))
	return nil
}

// badSignature stands for a signature that does not fit.
const badSignature = "bad"

// signedBy is the key whose signature a manifest file bears: "" when none, badSignature
// when it does not fit.
func (s ManifestFile) signedBy() string {
	if s.Signature == "" && s.SignedBy == "" {
		return ""
	}
	key, err := parseKey(s.SignedBy)
	if err != nil {
		return badSignature
	}
	signature, err := base64.StdEncoding.DecodeString(s.Signature)
	if err != nil {
		return badSignature
	}
	data, err := s.signed()
	if err != nil || !ed25519.Verify(key, data, signature) {
		return badSignature
	}
	return s.SignedBy
}

// origin judges a backup by its signature and by the hash that this database
// recorded when it was made ("" when it did not).
func (s signer) origin(signedBy, sum, recorded string) Origin {
	switch {
	case signedBy == badSignature, recorded != "" && recorded != sum:
		return Altered
	case signedBy == s.own():
		return Own
	case slices.Contains(s.trusted, signedBy):
		return Trusted
	}
	return Unknown
}

// untrusted says what is wrong with a backup's origin; "" when it is known.
func (b Stored) untrusted() string {
	switch {
	case b.Origin == Altered:
		return "THIS BACKUP WAS ALTERED: what its manifest file says is not what was signed or recorded when it was made"
	case b.Origin == Unknown && b.SignedBy != "":
		return "THIS INSTALLATION NEVER MADE THIS BACKUP. It is signed by an unknown key, " + b.SignedBy +
			"; if that is the key of your old server, set backup.trusted_keys"
	case b.Origin == Unknown:
		return "THIS INSTALLATION NEVER MADE THIS BACKUP, and it is not signed. " +
			"Anyone who can write to the backup storage may have put it there"
	}
	return ""
}

// originOf judges one backup at the moment when it is to be restored.
func (h *Handler) originOf(ctx context.Context, side ManifestFile) (Origin, error) {
	s, err := h.signer(ctx)
	if err != nil {
		return Unknown, err
	}
	recorded, err := h.recorded(ctx, side.ID)
	if err != nil {
		return Unknown, err
	}
	return s.origin(side.signedBy(), side.SHA256, recorded), nil
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
