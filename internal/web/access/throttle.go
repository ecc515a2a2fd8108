package access

import (
	"context"
	"fmt"
	"time"
)

// After throttleLimit wrong sign-ins within throttleWindow an account or an
// address has to wait for the window's end.
const (
	throttleLimit  = 10
	throttleWindow = 15 * time.Minute
)

// countLogin counts a try for each subject and refuses when one had too many.
func (s *Store) countLogin(ctx context.Context, subjects ...string) error {
	for _, subject := range subjects {
		failures, since, err := s.bump(ctx, Hash(subject))
		if err != nil {
			return fmt.Errorf("counting sign-ins: %w", err)
		}
		if failures > throttleLimit {
			return ThrottledError{max(fromMillis(since).Add(throttleWindow).Sub(s.now()), time.Second)}
		}
	}
	return nil
}

func (s *Store) bump(ctx context.Context, subject string) (failures int, since int64, err error) {
	now := s.millis()
	start := now - throttleWindow.Milliseconds()
	// MySQL assigns from left to right: failures must see the old since.
	update := s.db.Rebind(`UPDATE cmsjobs_logins SET failures = CASE WHEN since < ? THEN 1 ELSE failures + 1 END, since = CASE WHEN since < ? THEN ? ELSE since END WHERE subject = ?`)
	for range 2 {
		result, err := s.db.ExecContext(ctx, update, start, start, now, subject)
		if err != nil {
			return 0, 0, err
		}
		if n, err := result.RowsAffected(); err != nil {
			return 0, 0, err
		} else if n > 0 {
			break
		}
		inserted, err := s.insertOnce(ctx, `cmsjobs_logins (subject, failures, since) VALUES (?, 1, ?)`, subject, now)
		if err != nil {
			return 0, 0, err
		}
		if inserted {
			return 1, now, nil
		}
	}
	row := s.db.QueryRowxContext(ctx, s.db.Rebind(`SELECT failures, since FROM cmsjobs_logins WHERE subject = ?`), subject)
	err = row.Scan(&failures, &since)
	return failures, since, err
}

// forgiveLogin takes back what a sign-in that was right was counted for. The
// account starts anew; the address only gets this try back, or who owns one
// account could try others without end.
func (s *Store) forgiveLogin(ctx context.Context, account, address string) error {
	if _, err := s.db.ExecContext(ctx, s.db.Rebind(`DELETE FROM cmsjobs_logins WHERE subject = ?`), Hash(account)); err != nil {
		return fmt.Errorf("counting sign-ins: %w", err)
	}
	if _, err := s.db.ExecContext(ctx, s.db.Rebind(`UPDATE cmsjobs_logins SET failures = failures - 1 WHERE subject = ? AND failures > 0`), Hash(address)); err != nil {
		return fmt.Errorf("counting sign-ins: %w", err)
	}
	return nil
}
