package access

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// How wrong sign-ins are counted. An address may try throttleLimit times within
// throttleWindow, whatever the names. An account that strangers try to open
// from many addresses is answered more slowly, never refused: else anybody
// could lock its owner out. Who signed in from an address within knownLife is
// counted there by account and address, so that others at the same address
// cannot lock them out either.
const (
	throttleLimit  = 10
	throttleWindow = 15 * time.Minute
	slowAfter      = 20
	slowStep       = 250 * time.Millisecond
	slowMost       = 5 * time.Second
	knownLife      = 30 * 24 * time.Hour
	knownRenewed   = time.Hour
)

// The classes of rows in cmsjobs_logins.
const (
	classAddress = "address" // wrong sign-ins of an address
	classPair    = "pair"    // of an account at an address that it is known at
	classAccount = "account" // of an account, from anywhere
	classKnown   = "known"   // an account signed in from an address
)

// Rows of addresses are exact up to maxAddresses; beyond, and for accounts
// always, subjects share buckets: strangers choose how many there are.
const (
	maxAddresses = 10_000
	buckets      = 4096
)

// Network is what counts as one address: an IPv4 address, or the /64 network
// that one IPv6 customer has at least.
func Network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return jobs.PlainText(address, 64)
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	return netip.PrefixFrom(ip, 64).Masked().String()
}

// attempt is one try to sign in, with the subjects that it counts for.
type attempt struct {
	account, network string
	known            bool
}

func (a attempt) pair() string    { return "pair " + a.account + "\x00" + a.network }
func (a attempt) knownAs() string { return "known " + a.account + "\x00" + a.network }

func (a attempt) accountBucket() string { return classAccount + " bucket " + bucket(a.account) }

func bucket(text string) string { return Hash(text)[:3] } // 4096 of them

// countLogin counts a try before the password is looked at. It refuses by
// ThrottledError, writing nothing, where the address had too many, and says
// how long the answer should wait otherwise. The address is asked first.
func (s *Store) countLogin(ctx context.Context, a *attempt) (slow time.Duration, err error) {
	if a.known, err = s.knows(ctx, *a); err != nil {
		return 0, fmt.Errorf("counting sign-ins: %w", err)
	}
	subject, class := a.pair(), classPair
	if !a.known {
		class = classAddress
		if subject, err = s.addressSubject(ctx, a.network); err != nil {
			return 0, fmt.Errorf("counting sign-ins: %w", err)
		}
	}
	failures, since, err := s.failures(ctx, subject)
	if err == nil && failures < throttleLimit {
		failures, since, err = s.bump(ctx, subject, class, a.network)
	} else {
		failures++
	}
	if err != nil {
		return 0, fmt.Errorf("counting sign-ins: %w", err)
	}
	if failures > throttleLimit {
		return 0, ThrottledError{max(fromMillis(since).Add(throttleWindow).Sub(s.now()), time.Second)}
	}
	if a.known {
		return 0, nil
	}
	failures, _, err = s.bump(ctx, a.accountBucket(), classAccount, "")
	if err != nil {
		return 0, fmt.Errorf("counting sign-ins: %w", err)
	}
	return min(time.Duration(max(failures-slowAfter, 0))*slowStep, slowMost), nil
}

// addressSubject is the address itself while there are few.
func (s *Store) addressSubject(ctx context.Context, network string) (string, error) {
	subject := classAddress + " " + network
	var there, rows int
	if err := s.db.GetContext(ctx, &there, s.db.Rebind(`SELECT COUNT(*) FROM cmsjobs_logins WHERE subject = ?`),
		Hash(subject)); err != nil || there > 0 {
		return subject, err
	}
	if err := s.db.GetContext(ctx, &rows, s.db.Rebind(`SELECT COUNT(*) FROM cmsjobs_logins WHERE class = ?`),
		classAddress); err != nil {
		return "", err
	}
	if rows < maxAddresses {
		return subject, nil
	}
	return classAddress + " bucket " + bucket(network), nil
}

func (s *Store) knows(ctx context.Context, a attempt) (bool, error) {
	var n int
	err := s.db.GetContext(ctx, &n, s.db.Rebind(`SELECT COUNT(*) FROM cmsjobs_logins WHERE subject = ? AND expires_at >
		?`), Hash(a.knownAs()), s.millis())
	return n > 0, err
}

// failures within the window, and since when.
func (s *Store) failures(ctx context.Context, subject string) (failures int, since int64, err error) {
	var rows []struct {
		Failures int   `db:"failures"`
		Since    int64 `db:"since"`
	}
	err = s.db.SelectContext(ctx, &rows, s.db.Rebind(`SELECT failures, since FROM cmsjobs_logins WHERE subject = ? AND
		since >= ?`), Hash(subject), s.windowStart())
	if err != nil || len(rows) == 0 {
		return 0, 0, err
	}
	return rows[0].Failures, rows[0].Since, nil
}

func (s *Store) windowStart() int64 { return s.millis() - throttleWindow.Milliseconds() }

func (s *Store) bump(ctx context.Context, subject, class, address string) (failures int, since int64, err error) {
	hash, now, start := Hash(subject), s.millis(), s.windowStart()
	end := now + throttleWindow.Milliseconds()
	// MySQL assigns from left to right: failures must see the old since.
	update := s.db.Rebind(`UPDATE cmsjobs_logins SET failures = CASE WHEN since < ? THEN 1 ELSE failures + 1 END, since
		= CASE WHEN since < ? THEN ? ELSE since END, expires_at = ? WHERE subject = ?`)
	for range 2 {
		result, err := s.db.ExecContext(ctx, update, start, start, now, end, hash)
		if err != nil {
			return 0, 0, err
		}
		if n, err := result.RowsAffected(); err != nil {
			return 0, 0, err
		} else if n > 0 {
			break
		}
		inserted, err := s.insertOnce(ctx, "cmsjobs_logins", "subject, class, address, failures, since, expires_at",
			"(?, ?, ?, 1, ?, ?)", hash, class, address, now, end)
		if err != nil {
			return 0, 0, err
		}
		if inserted {
			return 1, now, nil
		}
	}
	return s.failures(ctx, subject)
}

// uncountTime is how long taking a try back may take.
const uncountTime = 5 * time.Second

// uncountLogin takes a try back that nobody is to blame for: the password was
// not looked at, because a database did not answer. Where ours does not answer
// either, the try may stay counted: if so, it ends with the window.
func (s *Store) uncountLogin(ctx context.Context, a attempt) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), uncountTime)
	defer cancel()
	subjects := []string{Hash(a.pair())}
	if !a.known {
		subjects = []string{Hash(classAddress + " " + a.network), Hash(classAddress + " bucket " + bucket(a.network)),
			Hash(a.accountBucket())}
	}
	for _, subject := range subjects {
		_, _ = s.db.ExecContext(ctx, s.db.Rebind(`UPDATE cmsjobs_logins SET failures = failures - 1 WHERE subject = ?
			AND failures > 0`), subject)
	}
}

// forgiveLogin takes back what a sign-in that was right was counted for, and
// remembers the account at its address. The account and the pair begin again;
// the address only gets this try back, or who owns one account could try others
// without end.
func (s *Store) forgiveLogin(ctx context.Context, a attempt) error {
	query, args, err := sqlx.In(`DELETE FROM cmsjobs_logins WHERE subject IN (?)`,
		[]string{Hash(a.pair()), Hash(a.accountBucket())})
	if err != nil {
		return fmt.Errorf("counting sign-ins: %w", err)
	}
	if _, err := s.db.ExecContext(ctx, s.db.Rebind(query), args...); err != nil {
		return fmt.Errorf("counting sign-ins: %w", err)
	}
	if !a.known {
		update := s.db.Rebind(`UPDATE cmsjobs_logins SET failures = failures - 1 WHERE subject IN (?, ?) AND failures >
			0`)
		if _, err := s.db.ExecContext(ctx, update, Hash(classAddress+" "+a.network),
			Hash(classAddress+" bucket "+bucket(a.network))); err != nil {
			return fmt.Errorf("counting sign-ins: %w", err)
		}
	}
	if err := s.remember(ctx, a); err != nil {
		return fmt.Errorf("remembering a sign-in's address: %w", err)
	}
	return nil
}

// remember notes that an account signed in from an address, at most hourly.
func (s *Store) remember(ctx context.Context, a attempt) error {
	now := s.millis()
	hash, end := Hash(a.knownAs()), now+knownLife.Milliseconds()
	inserted, err := s.insertOnce(ctx, "cmsjobs_logins", "subject, class, address, failures, since, expires_at",
		"(?, ?, ?, 0, ?, ?)", hash, classKnown, a.network, now, end)
	if err != nil || inserted {
		return err
	}
	_, err = s.db.ExecContext(ctx, s.db.Rebind(`UPDATE cmsjobs_logins SET since = ?, expires_at = ? WHERE subject = ?
		AND since < ?`), now, end, hash, now-knownRenewed.Milliseconds())
	return err
}
