package queue

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// sender is what packets do.
type sender interface {
	Send(ctx context.Context, db *sqlx.DB, statements []string, args []any) ([]int64, error)
}

// choosePackets is for MySQL itself. MariaDB has a statement for the same, and
// TiDB takes several statements only where it is told to.
func (s *Store) choosePackets() {
	if s.Dialect.Name != "mysql" || strings.Contains(s.Server, "MariaDB") || strings.Contains(s.Server, "TiDB") || s.TxOptions != nil {
		return
	}
	if p := database.PacketsOf(s.DB); p != nil {
		s.packets = p
	}
}

// onMySQL writes a plain end as one packet. Its guard stops it, and so undoes
// it, where a lease is lost.
func (s *Store) onMySQL(ctx context.Context, x plainEnd) ([]int64, error) {
	drop, args := x.drop.statement(s.Dialect)
	insertions, more := s.FewInsertions(x.lines, "@ended")
	free, _ := s.Dialect.RowsBy("job_id", x.drop.ids)
	statements := slices.Concat([]string{"START TRANSACTION", drop, database.Guard("@ended", s.MillisNow(), len(x.drop.ids))},
		insertions, []string{"DELETE FROM cmsjobs_unique WHERE " + free})
	args = append(args, more...)
	taken := 0 // where the claim's answer is
	if x.next != nil {
		taking, more := s.taking(x.next)
		taken, statements, args = len(statements), append(statements, taking), append(args, more...)
	}
	s.Asked.Add(1)
	found, err := s.packets.Send(ctx, s.DB, append(statements, "COMMIT"), args)
	switch {
	case errors.Is(err, database.ErrShortPacket):
		return nil, errShort
	case errors.Is(err, database.ErrUnsent):
		if errors.Is(err, database.ErrNoPackets) {
			s.oneStatement.Store(false)
		}
		return nil, errors.Join(errRefused, err)
	case err != nil:
		return nil, s.understood(err)
	}
	if taken > 0 {
		x.next.won = found[taken] == 1
	}
	return x.drop.ids, nil
}
