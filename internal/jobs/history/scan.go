package history

import (
	"context"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// maxLooked bounds how many rows one call looks at to find matching ones where
// no index says which match; stretchRows is how many of them one statement does.
const (
	maxLooked = 10_000
	scanBatch = 5_000
)

// tableScan is how a table is searched for rows that no index knows.
type tableScan struct {
	table   string
	db      tables.Tx
	read    func(condition, order string, limit int) ([]record, error) // matching rows, as far as SQL decides it
	matches func(record) bool                                          // the rest
	whole   bool                                                       // SQL finds them quickly: in one stretch
}

// scanTable searches a table by its primary key, stretch by stretch, until limit
// rows match, the table ends, or maxLooked rows were looked at.
func (s *Store) scanTable(ctx context.Context, v tableScan, from keysetCursor, limit int) (page, error) {
	p := page{last: from}
	for looked := 0; looked < maxLooked; looked += scanBatch {
		edge, last, err := s.batchBound(ctx, v, p.last)
		if err != nil {
			return page{}, err
		}
		for step := min(limit, firstStep); ; {
			rows, err := v.read(p.last.condition("id")+edge, from.order("id"), step)
			if err != nil {
				return page{}, err
			}
			for _, r := range rows {
				p.last.key = r.key
				if !v.matches(r) {
					continue
				}
				if p.items = append(p.items, r); len(p.items) == limit {
					return p, nil
				}
			}
			if len(rows) < step {
				break
			}
			step = nextStep(step, rows)
		}
		if edge == "" {
			p.end = true
			return p, nil
		}
		p.last.key = last
	}
	return p, nil
}

// Rows are read in steps of so many that their payloads do not fill the memory:
// a megabyte each is allowed.
const (
	firstStep = 50
	fullStep  = 2000
	stepBytes = 4 << 20
)

// nextStep is twice the last one, as far as rows of the size that was seen
// stay within stepBytes.
func nextStep(step int, rows []record) int {
	size := int64(1)
	for _, r := range rows {
		size += min(r.size, tables.Oversize)
	}
	each := size/int64(max(len(rows), 1)) + 1
	return max(1, min(2*step, fullStep, int(stepBytes/each)))
}

// batchBound is the condition and the key at which a stretch ends; "" where the table
// ends in it.
func (s *Store) batchBound(ctx context.Context, v tableScan, from keysetCursor) (condition string, key int64,
	err error) {
	if v.whole {
		return "", 0, nil
	}
	there, err := s.tables.QueryRow(ctx, v.db, []any{&key},
		fmt.Sprintf("SELECT id FROM %s WHERE %s%s LIMIT 1 OFFSET %d", v.table, from.condition("id"), from.order("id"),
			scanBatch-1))
	switch {
	case err != nil:
		return "", 0, fmt.Errorf("looking how far %s goes: %w", v.table, err)
	case !there:
		return "", 0, nil
	case from.oldest:
		return fmt.Sprintf(" AND id <= %d", key), key, nil
	}
	return fmt.Sprintf(" AND id >= %d", key), key, nil
}
