package history

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// indexStep is how many failed rows are read and indexed at once.
const indexStep = 500

// indexFailures brings cmsjobs_failures up to date with failed_jobs, which PHP
// writes and empties too: new rows by their number, and where the counts still
// differ, by comparing all numbers.
func (s *Store) indexFailures(ctx context.Context) error {
	if err := s.indexNewFailures(ctx); err != nil {
		return err
	}
	var have, want int64
	if _, err := s.tables.QueryRow(ctx, s.tables.OwnDB, []any{&have},
		"SELECT COUNT(*) FROM cmsjobs_failures"); err != nil {
		return fmt.Errorf("counting the index of failures: %w", err)
	}
	if _, err := s.tables.QueryRow(ctx, s.tables.DB, []any{&want}, "SELECT COUNT(*) FROM "+
		s.tables.Failed.Name); err != nil {
		return fmt.Errorf("counting %s: %w", s.tables.Failed.Name, err)
	}
	if have == want {
		return nil
	}
	return s.fixIndex(ctx)
}

// indexNewFailures indexes rows that came since the last one that is indexed.
func (s *Store) indexNewFailures(ctx context.Context) error {
	var last sql.NullInt64
	if _, err := s.tables.QueryRow(ctx, s.tables.OwnDB, []any{&last},
		"SELECT MAX(failed_id) FROM cmsjobs_failures"); err != nil {
		return fmt.Errorf("reading the index of failures: %w", err)
	}
	for from := last.Int64; ; {
		rows, err := s.queryFailed(ctx, s.tables.DB, fmt.Sprintf("id > %d", from), nil, " ORDER BY id", indexStep)
		if err != nil {
			return err
		}
		if err := s.addFailures(ctx, rows); err != nil {
			return err
		}
		if len(rows) < indexStep {
			return nil
		}
		from = rows[len(rows)-1].key
	}
}

// addFailures indexes rows. Several processes may do so at once.
func (s *Store) addFailures(ctx context.Context, rows []record) error {
	if len(rows) == 0 {
		return nil
	}
	var values []string
	var args []any
	for _, r := range rows {
		values = append(values, fmt.Sprintf("(%d,?,?,%d,?)", r.key, r.EndedAt.Unix()))
		args = append(args, Fingerprint(r.Type, r.Error), tables.CutWord(r.Type), tables.ValidText(messageOf(r.Error)))
	}
	_, err := s.tables.Exec(ctx, s.tables.OwnDB, s.tables.Dialect.InsertIgnore("cmsjobs_failures",
		"failed_id, cause, type, failed_at, message", strings.Join(values, ",")), args...)
	if err != nil {
		return fmt.Errorf("writing the index of failures: %w", err)
	}
	return nil
}

// fixIndex compares the numbers of both tables, in steps, and removes and
// adds what differs.
func (s *Store) fixIndex(ctx context.Context) error {
	const step = 10_000
	for from := int64(0); ; {
		want, err := s.numbers(ctx, s.tables.DB, s.tables.Failed.Name, "id", from, step)
		if err != nil {
			return err
		}
		// The same stretch of the index: to the last number that was read, or to
		// its end.
		until := int64(1<<63 - 1)
		if len(want) == step {
			until = want[step-1]
		}
		if err := s.fixIndexBetween(ctx, want, from, until); err != nil {
			return err
		}
		if len(want) < step {
			return nil
		}
		from = until
	}
}

func (s *Store) fixIndexBetween(ctx context.Context, want []int64, from, until int64) error {
	var have []int64
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		have = append(have, id)
		return err
	}, fmt.Sprintf(
		"SELECT failed_id FROM cmsjobs_failures WHERE failed_id > %d AND failed_id <= %d ORDER BY failed_id", from,
		until))
	if err != nil {
		return fmt.Errorf("reading the index of failures: %w", err)
	}
	gone := without(have, want)
	for part := range slices.Chunk(gone, indexStep) {
		in, args := s.tables.Dialect.In("failed_id", part)
		if _, err := s.tables.Exec(ctx, s.tables.OwnDB, "DELETE FROM cmsjobs_failures WHERE "+in, args...); err != nil {
			return fmt.Errorf("fixing the index of failures: %w", err)
		}
	}
	for part := range slices.Chunk(without(want, have), indexStep) {
		in, args := s.tables.Dialect.In("id", part)
		rows, err := s.queryFailed(ctx, s.tables.DB, in, args, "", len(part))
		if err == nil {
			err = s.addFailures(ctx, rows)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// without lists what is in a and not in b; both are sorted.
func without(a, b []int64) []int64 {
	var rest []int64
	for _, x := range a {
		for len(b) > 0 && b[0] < x {
			b = b[1:]
		}
		if len(b) == 0 || b[0] != x {
			rest = append(rest, x)
		}
	}
	return rest
}

func (s *Store) numbers(ctx context.Context, q tables.Tx, table, column string, from int64, limit int) ([]int64,
	error) {
	var list []int64
	err := s.tables.Query(ctx, q, func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		list = append(list, id)
		return err
	}, fmt.Sprintf("SELECT %s FROM %s WHERE %s > %d ORDER BY %s LIMIT %d", column, table, column, from, column, limit))
	if err != nil {
		return nil, fmt.Errorf("reading the numbers of %s: %w", table, err)
	}
	return list, nil
}

// indexed lists numbers of failed rows by cause and type.
func (s *Store) indexed(ctx context.Context, f jobs.Filter, from keysetCursor, limit int) ([]int64, error) {
	var c conditions
	if f.Cause != "" {
		c.add("cause = ?", f.Cause)
	}
	c.in("type", s.spellings(f.Types))
	c.add(from.condition("failed_id"))
	var ids []int64
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		ids = append(ids, id)
		return err
	}, fmt.Sprintf("SELECT failed_id FROM cmsjobs_failures WHERE %s%s LIMIT %d", c, from.order("failed_id"), limit),
		c.args...)
	if err != nil {
		return nil, fmt.Errorf("reading the index of failures: %w", err)
	}
	return ids, nil
}
