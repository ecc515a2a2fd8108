package access

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// How long a session lives at most, and without being used.
const (
	SessionLife = 12 * time.Hour
	SessionIdle = 30 * time.Minute
)

// seenEvery is how precisely the last use of a session is noted.
const seenEvery = time.Minute

type sessionRow struct {
	Hash      string `db:"hash"`
	Account   string `db:"account"`
	Source    string `db:"source"`
	Role      string `db:"role"`
	Address   string `db:"address"`
	Agent     string `db:"agent"`
	CreatedAt int64  `db:"created_at"`
	SeenAt    int64  `db:"seen_at"`
}

// Begin starts a session for a person who signed in and returns its secret,
// for the cookie. Each sign-in gets a new one.
func (g *Authenticator) Begin(ctx context.Context, p Person, address, agent string) (string, error) {
	plain, now := secret(32), g.Store.millis()
	_, err := g.Store.db.ExecContext(ctx, g.Store.db.Rebind(`INSERT INTO cmsjobs_sessions (hash, account, source, role,
		address, agent, created_at, seen_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`),
		Hash(plain), jobs.PlainText(p.Name, 191), p.Source, string(p.Role), jobs.PlainText(address, 64),
		jobs.PlainText(agent, 191), now, now)
	if err != nil {
		return "", fmt.Errorf("storing the session: %w", err)
	}
	return plain, nil
}

// BySession finds whose session a cookie names, with the rights that its
// account has now. ErrRefused when there is none or it ended.
func (g *Authenticator) BySession(ctx context.Context, plain string) (Principal, error) {
	var row sessionRow
	s := g.Store
	err := s.db.GetContext(ctx, &row, s.db.Rebind(`SELECT * FROM cmsjobs_sessions WHERE hash = ?`), Hash(plain))
	if errors.Is(err, sql.ErrNoRows) {
		return Principal{}, ErrRefused
	}
	if err != nil {
		return Principal{}, fmt.Errorf("looking up the session: %w", err)
	}
	now := s.millis()
	if now-row.CreatedAt > SessionLife.Milliseconds() || now-row.SeenAt > SessionIdle.Milliseconds() {
		return Principal{}, ErrRefused
	}
	role, err := g.current(ctx, row.Account, row.Source, fromMillis(row.CreatedAt))
	if err != nil {
		return Principal{}, err
	}
	if now-row.SeenAt > seenEvery.Milliseconds() {
		if _, err := s.db.ExecContext(ctx, s.db.Rebind(`UPDATE cmsjobs_sessions SET seen_at = ? WHERE hash = ?`), now,
			row.Hash); err != nil {
			return Principal{}, fmt.Errorf("noting the session's use: %w", err)
		}
	}
	return Principal{Name: row.Account, Via: "session", Scopes: role.Scopes()}, nil
}

// End ends a session.
func (g *Authenticator) End(ctx context.Context, plain string) error {
	_, err := g.Store.db.ExecContext(ctx, g.Store.db.Rebind(`DELETE FROM cmsjobs_sessions WHERE hash = ?`), Hash(plain))
	if err != nil {
		return fmt.Errorf("ending the session: %w", err)
	}
	return nil
}

// FormToken is the value that forms of a session must carry: only who reads
// the page can know it, as it is derived from the cookie's secret.
func FormToken(session string) string {
	mac := hmac.New(sha256.New, []byte(session))
	mac.Write([]byte("cmsjobs form"))
	return hex.EncodeToString(mac.Sum(nil))
}
