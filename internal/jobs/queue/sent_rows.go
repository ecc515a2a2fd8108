package queue

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// The Laravel package sends the row that it inserted with its news, and the binary log has
// it. A process that found the queue empty, and the table to end right before this row, has
// read all that comes before it. So it claims the row unread, on the condition that the
// table has it as it was sent: a job costs one commit, and a false row nothing but a look
// in vain.

// maxSent bounds how many rows are kept that were sent.
const maxSent = 16

// sentRow is a row that was sent, and the queue in lower case.
type sentRow struct {
	queue string
	row   *tables.Candidate
}

// NoteRow says that a job was enqueued into a queue as NoteArrival does, and what its row
// is: an object of its id, payload, available_at and created_at; "" where that is not
// known.
func (s *Store) NoteRow(queue, row string) {
	if c, ok := tables.Sent(row); ok {
		s.mu.Lock()
		s.sent = append(s.sent[max(0, len(s.sent)-maxSent+1):len(s.sent):len(s.sent)],
			sentRow{strings.ToLower(queue), c})
		s.mu.Unlock()
	}
	s.NoteArrival(queue)
}

// takeSent takes the rows that were sent of a queue, in the order of their numbers.
func (s *Store) takeSent(queue string) (rows []*tables.Candidate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue = strings.ToLower(queue)
	s.sent = slices.DeleteFunc(s.sent, func(x sentRow) bool {
		if x.queue == queue {
			rows = append(rows, x.row)
		}
		return x.queue == queue
	})
	slices.SortFunc(rows, func(a, b *tables.Candidate) int { return cmp.Compare(a.ID, b.ID) })
	return rows
}

// claimSent claims rows that were sent, if they are the next ones in the table.
func (c *claim) claimSent(ctx context.Context, l *scanCursor) error {
	sent := c.s.takeSent(l.queue)
	now, known := c.s.tables.RecentSeconds()
	if !known || l.newest <= 0 || c.s.tables.Layout.Name() != tables.Stock {
		return nil
	}
	for _, row := range sent {
		before := len(c.taken)
		if row.ID != l.newest+1 || c.want() <= 0 {
			continue
		}
		row.Seen = now
		if _, err := c.process(ctx, l.queue, []*tables.Candidate{row}, now); err != nil || len(c.taken) == before {
			return err
		}
		l.newest = row.ID
	}
	return nil
}
