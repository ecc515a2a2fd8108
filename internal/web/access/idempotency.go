package access

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// idempotencyLife is how long the key of a request is remembered (P7).
const idempotencyLife = 24 * time.Hour

// ErrKeyReused says that the key was used for another request.
var ErrKeyReused = phrase.Errorf("the Idempotency-Key was used for a request with another body")

// Reservation is what is known about a key.
type Reservation struct {
	// UUID is the job's, chosen by the request that came first.
	UUID string
	// Answer is what the first request was answered, nil while it is unknown.
	Answer []byte
	// Fresh says that this request came first.
	Fresh bool

	id string
}

// Reserve notes that who asks for body under key, and proposes uuid for the
// job. A request that came before decides: the same body gets its UUID and its
// answer, another body ErrKeyReused.
func (s *Store) Reserve(ctx context.Context, who, key, body, uuid string) (Reservation, error) {
	id, bodyHash, now := Hash(fmt.Sprintf("%d %s %s", len(who), who, key)), Hash(body), s.millis()
	_, err := s.db.ExecContext(ctx, s.db.Rebind(`DELETE FROM cmsjobs_idempotency WHERE id = ? AND created_at < ?`), id,
		now-idempotencyLife.Milliseconds())
	if err != nil {
		return Reservation{}, fmt.Errorf("looking up the Idempotency-Key: %w", err)
	}
	fresh, err := s.insertOnce(ctx, "cmsjobs_idempotency", "id, body, uuid, created_at", "(?, ?, ?, ?)", id, bodyHash,
		uuid, now)
	if err != nil {
		return Reservation{}, fmt.Errorf("reserving the Idempotency-Key: %w", err)
	}
	if fresh {
		return Reservation{UUID: uuid, Fresh: true, id: id}, nil
	}
	var row struct {
		Body   string         `db:"body"`
		UUID   string         `db:"uuid"`
		Answer sql.NullString `db:"answer"`
	}
	if err := s.db.GetContext(ctx, &row,
		s.db.Rebind(`SELECT body, uuid, answer FROM cmsjobs_idempotency WHERE id = ?`), id); err != nil {
		return Reservation{}, fmt.Errorf("looking up the Idempotency-Key: %w", err)
	}
	if row.Body != bodyHash {
		return Reservation{}, ErrKeyReused
	}
	r := Reservation{UUID: row.UUID, id: id}
	if row.Answer.Valid {
		r.Answer = []byte(row.Answer.String)
	}
	return r, nil
}

// Remember keeps the answer for those who repeat the request.
func (s *Store) Remember(ctx context.Context, r Reservation, answer []byte) error {
	_, err := s.db.ExecContext(ctx, s.db.Rebind(`UPDATE cmsjobs_idempotency SET answer = ? WHERE id = ?`),
		string(answer), r.id)
	if err != nil {
		return fmt.Errorf("keeping the answer under its Idempotency-Key: %w", err)
	}
	return nil
}

// Unreserve releases a key whose request was refused, so that a corrected
// one may use it.
func (s *Store) Unreserve(ctx context.Context, r Reservation) error {
	_, err := s.db.ExecContext(ctx, s.db.Rebind(`DELETE FROM cmsjobs_idempotency WHERE id = ? AND answer IS NULL`),
		r.id)
	if err != nil {
		return fmt.Errorf("releasing the Idempotency-Key: %w", err)
	}
	return nil
}
