package access

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// TokenPrefix begins every token, so that scanners for leaked secrets find it.
const TokenPrefix = "cmsj_"

// Token is a program's key, without its secret.
type Token struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Scopes    Scopes    `json:"scopes"`
	Types     []string  `json:"types"` // empty means any
	CreatedBy string    `json:"created_by"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // zero: never
	UsedAt    time.Time `json:"used_at,omitzero"`    // to the minute
	RevokedAt time.Time `json:"revoked_at,omitzero"`
}

type tokenRow struct {
	ID        string `db:"id"`
	Name      string `db:"name"`
	Hash      string `db:"hash"`
	Scopes    string `db:"scopes"`
	Types     string `db:"types"`
	CreatedBy string `db:"created_by"`
	CreatedAt int64  `db:"created_at"`
	ExpiresAt int64  `db:"expires_at"`
	UsedAt    int64  `db:"used_at"`
	RevokedAt int64  `db:"revoked_at"`
}

func (r tokenRow) token() (Token, error) {
	scopes, err := ParseScopes(r.Scopes)
	if err != nil {
		return Token{}, err
	}
	jobTypes := []string{}
	if err := json.Unmarshal([]byte(r.Types), &jobTypes); err != nil {
		return Token{}, fmt.Errorf("reading the types of token %s: %w", r.ID, err)
	}
	return Token{ID: r.ID, Name: r.Name, Scopes: scopes, Types: jobTypes, CreatedBy: r.CreatedBy,
		CreatedAt: fromMillis(r.CreatedAt),
		ExpiresAt: fromMillis(r.ExpiresAt), UsedAt: fromMillis(r.UsedAt), RevokedAt: fromMillis(r.RevokedAt)}, nil
}

// CreateToken makes a token and returns its secret, which is stored nowhere.
// Name, Scopes, Kinds, CreatedBy and ExpiresAt of t are used.
func (s *Store) CreateToken(ctx context.Context, t Token) (Token, string, error) {
	t.Name = strings.TrimSpace(t.Name)
	switch {
	case t.Name == "" || len(t.Name) > 191:
		return Token{}, "",
			jobs.Invalid(phrase.Errorf("a token needs a name of at most 191 bytes that says who uses it"))
	case len(t.Scopes) == 0:
		return Token{}, "", jobs.Invalid(phrase.Errorf("a token needs one scope at least of %v", AllScopes()))
	case !t.ExpiresAt.IsZero() && !t.ExpiresAt.After(s.now()):
		return Token{}, "", jobs.Invalid(phrase.Errorf("the token would be expired already"))
	}
	if t.Types == nil {
		t.Types = []string{}
	}
	jobTypes, err := json.Marshal(t.Types)
	if err != nil {
		return Token{}, "", fmt.Errorf("encoding the token's types: %w", err)
	}
	plain := TokenPrefix + secret(20)
	t.ID, t.CreatedAt = secret(6), fromMillis(s.millis())
	_, err = s.db.ExecContext(ctx, s.db.Rebind(`INSERT INTO cmsjobs_tokens (id, name, hash, scopes, types, created_by,
		created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`),
		t.ID, t.Name, Hash(plain), t.Scopes.String(), string(jobTypes), jobs.PlainText(t.CreatedBy, 191),
		toMillis(t.CreatedAt), toMillis(t.ExpiresAt))
	if err != nil {
		return Token{}, "", fmt.Errorf("storing the token: %w", err)
	}
	return t, plain, nil
}

// Tokens lists all tokens, newest first, revoked ones too.
func (s *Store) Tokens(ctx context.Context) ([]Token, error) {
	var rows []tokenRow
	if err := s.db.SelectContext(ctx, &rows, `SELECT * FROM cmsjobs_tokens ORDER BY created_at DESC, id`); err != nil {
		return nil, fmt.Errorf("listing tokens: %w", err)
	}
	tokens := make([]Token, 0, len(rows))
	for _, r := range rows {
		t, err := r.token()
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, t)
	}
	return tokens, nil
}

// RevokeToken ends a token at once. Revoking twice is harmless.
func (s *Store) RevokeToken(ctx context.Context, id string) error {
	var there int
	if err := s.db.GetContext(ctx, &there, s.db.Rebind(`SELECT COUNT(*) FROM cmsjobs_tokens WHERE id = ?`),
		id); err != nil {
		return fmt.Errorf("looking up the token: %w", err)
	}
	if there == 0 {
		return fmt.Errorf("token %q: %w", jobs.PlainText(id, 40), jobs.ErrNotFound)
	}
	_, err := s.db.ExecContext(ctx, s.db.Rebind(`UPDATE cmsjobs_tokens SET revoked_at = ? WHERE id = ? AND revoked_at =
		0`), s.millis(), id)
	if err != nil {
		return fmt.Errorf("revoking the token: %w", err)
	}
	return nil
}

// usedEvery is how precisely the last use of a token is noted.
const usedEvery = time.Minute

// ByToken finds whom a token stands for. ErrRefused when it is unknown,
// expired or revoked.
func (s *Store) ByToken(ctx context.Context, plain string) (Principal, error) {
	if !strings.HasPrefix(plain, TokenPrefix) {
		return Principal{}, ErrRefused
	}
	// The lookup compares hashes: its time tells nothing about the secret.
	var row tokenRow
	err := s.db.GetContext(ctx, &row, s.db.Rebind(`SELECT * FROM cmsjobs_tokens WHERE hash = ?`), Hash(plain))
	if errors.Is(err, sql.ErrNoRows) {
		return Principal{}, ErrRefused
	}
	if err != nil {
		return Principal{}, fmt.Errorf("looking up the token: %w", err)
	}
	now := s.millis()
	if row.RevokedAt != 0 || (row.ExpiresAt != 0 && row.ExpiresAt <= now) {
		return Principal{}, ErrRefused
	}
	t, err := row.token()
	if err != nil {
		return Principal{}, err
	}
	if now-row.UsedAt > usedEvery.Milliseconds() {
		if _, err := s.db.ExecContext(ctx, s.db.Rebind(`UPDATE cmsjobs_tokens SET used_at = ? WHERE id = ?`), now,
			row.ID); err != nil {
			return Principal{}, fmt.Errorf("noting the token's use: %w", err)
		}
	}
	return Principal{Name: t.Name, Via: "token " + t.ID, Scopes: t.Scopes, Types: t.Types}, nil
}
