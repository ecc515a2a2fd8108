package sqlstore

import (
	"context"
	"fmt"
)

// maxLooked bounds how many rows one call looks at to find matching ones where
// no index says which match; stretchRows is how many of them one statement does.
const (
	maxLooked   = 10_000
	stretchRows = 5_000
)

// sieve is how a table is searched for rows that no index knows.
type sieve struct {
	table   string
	db      Tx
	read    func(condition, order string, limit int) ([]found, error) // matching rows, as far as SQL decides it
	matches func(found) bool                                          // the rest
	whole   bool                                                      // SQL finds them quickly: in one stretch
}

// sift searches a table by its primary key, stretch by stretch, until limit
// rows match, the table ends, or maxLooked rows were looked at.
func (s *Store) sift(ctx context.Context, v sieve, from position64, limit int) (page, error) {
	p := page{last: from}
	for looked := 0; looked < maxLooked; looked += stretchRows {
		edge, last, err := s.edge(ctx, v, p.last)
		if err != nil {
			return page{}, err
		}
		for step := limit; ; step = min(step*2, 2000) {
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
		}
		if edge == "" {
			p.end = true
			return p, nil
		}
		p.last.key = last
	}
	return p, nil
}

// edge is the condition and the key at which a stretch ends; "" where the table
// ends in it.
func (s *Store) edge(ctx context.Context, v sieve, from position64) (condition string, key int64, err error) {
	if v.whole {
		return "", 0, nil
	}
	there, err := s.one(ctx, v.db, []any{&key}, fmt.Sprintf("SELECT id FROM %s WHERE %s%s LIMIT 1 OFFSET %d", v.table, from.condition("id"), from.order("id"), stretchRows-1))
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
