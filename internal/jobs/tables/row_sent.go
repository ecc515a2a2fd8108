package tables

import (
	"encoding/json"
	"fmt"
)

// Sent is a row as the program that inserted it sent it: nobody has read it, and the
// program may lie.
func Sent(text string) (*Candidate, bool) {
	var row struct {
		ID        int64  `json:"id"`
		Payload   string `json:"payload"`
		Due       int64  `json:"available_at"`
		CreatedAt int64  `json:"created_at"`
	}
	if json.Unmarshal([]byte(text), &row) != nil || row.ID <= 0 {
		return nil, false
	}
	return &Candidate{ID: row.ID, Due: row.Due, Created: row.CreatedAt, Payload: []byte(row.Payload),
		Size: int64(len(row.Payload)), Sent: true}, true
}

// AsSent is the condition that a stock table has a row as it was sent, that the row waits
// and is due, and that the database's clock shows what it was taken to show.
func (s *Tables) AsSent(queue string, c *Candidate) (string, []any) {
	t, now := s.Layout.Table(), s.SecondsNow()
	return fmt.Sprintf("queue = ? AND %s AND attempts = 0 AND %s AND %s = %s AND %s <= %s AND %s = %s "+
			"AND %s BETWEEN %d AND %d", s.Dialect.SameBytes(t.Payload), s.Layout.Waiting(),
			t.Due.Name, t.Due.FromUnix(c.Due), t.Due.Name, t.Due.FromExpr(now),
			t.Created.Name, t.Created.FromUnix(c.Created), now, c.Seen-clockError, c.Seen+clockError),
		[]any{queue, string(c.Payload)}
}

// clockError is by how many seconds the database's clock may differ from what a row was
// claimed by that was not read.
const clockError = 2
