package access

import (
	"context"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Lock is an address whose sign-ins are refused for a while, because too many
// of them were wrong.
type Lock struct {
	ID      string `json:"id"`
	Address string `json:"address"` // an IPv4 address or an IPv6 network
	// Account says that one account is locked at the address, not the address.
	Account  bool      `json:"account"`
	Failures int       `json:"failures"`
	Until    time.Time `json:"until"`
}

// maxLocks bounds the list.
const maxLocks = 200

// Locks lists what is locked now, the latest first.
func (s *Store) Locks(ctx context.Context) ([]Lock, error) {
	var rows []struct {
		Subject  string `db:"subject"`
		Class    string `db:"class"`
		Address  string `db:"address"`
		Failures int    `db:"failures"`
		Since    int64  `db:"since"`
	}
	query := `SELECT subject, class, address, failures, since FROM cmsjobs_logins WHERE class IN (?, ?) AND failures >=
		? AND since >= ? ORDER BY since DESC, subject LIMIT ?`
	if err := s.db.SelectContext(ctx, &rows, s.db.Rebind(query), classAddress, classPair, throttleLimit,
		s.windowStart(), maxLocks); err != nil {
		return nil, fmt.Errorf("listing locked addresses: %w", err)
	}
	list := make([]Lock, len(rows))
	for i, r := range rows {
		list[i] = Lock{ID: r.Subject, Address: r.Address, Account: r.Class == classPair, Failures: r.Failures,
			Until: fromMillis(r.Since).Add(throttleWindow)}
	}
	return list, nil
}

// Unlock lifts a lock by its id, or all locks of an address. It wraps
// jobs.ErrNotFound.
func (s *Store) Unlock(ctx context.Context, idOrAddress string) error {
	n, err := s.deleteLogins(ctx, `(subject = ? OR address = ?)`, idOrAddress, Network(idOrAddress))
	if err == nil && n == 0 {
		return fmt.Errorf("%w: no address %.64q is locked", jobs.ErrNotFound, idOrAddress)
	}
	return err
}

// UnlockAll lifts all locks and forgets all counts.
func (s *Store) UnlockAll(ctx context.Context) (int64, error) { return s.deleteLogins(ctx, `1 = 1`) }

// deleteLogins deletes counts. What is known of good sign-ins stays.
func (s *Store) deleteLogins(ctx context.Context, where string, args ...any) (int64, error) {
	result, err := s.db.ExecContext(ctx, s.db.Rebind(`DELETE FROM cmsjobs_logins WHERE class <> ? AND `+where),
		append([]any{classKnown}, args...)...)
	if err != nil {
		return 0, fmt.Errorf("lifting locks: %w", err)
	}
	return result.RowsAffected()
}
