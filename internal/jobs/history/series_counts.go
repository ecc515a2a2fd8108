package history

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Charts need of each half hour how many attempts had a type, a queue, a wait, a
// duration. That is counted once as well, and kept in cmsjobs_run_figures.
const (
	keepFigures  = int64(62 * 24 * time.Hour / time.Millisecond)
	figureChunk  = 500 // rows of one INSERT
	waitFigure   = "wait"
	lengthFigure = "duration"
)

// attempted are the outcomes of completed and failed attempts.
var attempted = []string{jobs.Completed.String(), jobs.Failed.String(), jobs.Retried.String(), jobs.CrashedOutcome}

// A wait or a duration is counted by its range: whole milliseconds up to 15, then
// eight ranges each time the length doubles, up to 12 days.
const (
	exactRanges = 16
	perDouble   = exactRanges / 2
	doubles     = 26
	lastRange   = exactRanges + doubles*perDouble - 1
)

// rangeStart is the first length of a range and how many it spans.
func rangeStart(n int) (first, width int64) {
	if n < exactRanges {
		return int64(max(n, 0)), 1
	}
	n = min(n, lastRange) - exactRanges
	width = int64(2) << (n / perDouble)
	return width * int64(perDouble+n%perDouble), width
}

// rangeSQL is the range of a column's milliseconds.
func rangeSQL(column string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "CASE WHEN %s < 0 THEN 0 WHEN %s < %d THEN %s", column, column, exactRanges, column)
	for d := range doubles {
		first, width := rangeStart(exactRanges + d*perDouble)
		fmt.Fprintf(&out, " WHEN %s < %d THEN %d + (%s - %d - MOD(%s, %d)) / %d", column, 2*first,
			exactRanges+d*perDouble, column, first, column, width, width)
	}
	fmt.Fprintf(&out, " ELSE %d END", lastRange)
	return out.String()
}

// figure is what attempts of one step of time have in common; at is the step's
// number.
type figure struct {
	kind, name string
	at         int64
}

// bringFigures counts the half hours that are over, and says until when all are
// counted.
func (s *Store) bringFigures(ctx context.Context) (until int64, err error) {
	return s.bring(ctx, &s.figures, "cmsjobs_run_figures", s.countFigures)
}

// countFigures counts a stretch of half hours and keeps it: all of it or nothing.
func (s *Store) countFigures(ctx context.Context, from, to int64) error {
	counts := map[figure]int64{}
	if err := s.eachFigure(ctx, flowWidth, from, to, func(f figure, n int64) { counts[f] += n }); err != nil {
		return err
	}
	if len(counts) == 0 {
		return nil
	}
	list := make([]figure, 0, len(counts))
	for f := range counts {
		list = append(list, f)
	}
	// in one order, so that two processes do not wait for each other
	slices.SortFunc(list, func(a, b figure) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.at, b.at), cmp.Compare(a.name, b.name))
	})
	return database.Retry(ctx, "keep figures", func() error { return s.keepFigures(ctx, list, counts) })
}

func (s *Store) keepFigures(ctx context.Context, list []figure, counts map[figure]int64) error {
	tx, err := s.tables.Begin(ctx, s.tables.OwnDB)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(list, figureChunk) {
		var args []any
		for _, f := range chunk {
			args = append(args, f.kind, f.at*flowWidth, f.name, counts[f])
		}
		if _, err := s.tables.Exec(ctx, tx, s.tables.Dialect.InsertIgnore("cmsjobs_run_figures",
			"figure, at, name, runs", database.Rows("(?,?,?,?)", len(chunk))), args...); err != nil {
			tables.Rollback(tx)
			return fmt.Errorf("keeping what was counted of the history: %w", err)
		}
	}
	return tx.Commit()
}

// eachFigure counts attempts that ended in [from, to) by steps of a width, all in
// Unix ms. The database counts; what it sends grows with the kinds of attempts,
// not with their number.
func (s *Store) eachFigure(ctx context.Context, width, from, to int64, each func(figure, int64)) error {
	part, args := database.InWords("outcome", attempted)
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var outcome, jobType, queue string
		var at, wait, length, n int64
		if err := r.Scan(&outcome, &jobType, &queue, &at, &wait, &length, &n); err != nil {
			return err
		}
		each(figure{string(jobs.ByOutcome), outcome, at}, n)
		each(figure{string(jobs.ByType), jobType, at}, n)
		each(figure{string(jobs.ByQueue), queue, at}, n)
		each(figure{waitFigure, strconv.FormatInt(wait, 10), at}, n)
		each(figure{lengthFigure, strconv.FormatInt(length, 10), at}, n)
		return nil
	}, fmt.Sprintf("SELECT outcome, type, queue, CAST(%s AS %s) AS step, CAST(%s AS %s) AS wait, CAST(%s AS %s) "+
		"AS length, COUNT(*) FROM cmsjobs_runs%s WHERE %s AND ended_at >= %d AND ended_at < %d "+
		"GROUP BY outcome, type, queue, 4, 5, 6", s.step("ended_at", width), s.wholeNumber(),
		rangeSQL("wait_ms"), s.wholeNumber(), rangeSQL("duration_ms"), s.wholeNumber(), s.runsHint("outcome"), part,
		from, to), args...)
	if err != nil {
		return fmt.Errorf("counting attempts: %w", err)
	}
	return nil
}

// eachKept is eachFigure out of what is counted, for one split besides waits and
// durations. The width is a multiple of half an hour.
func (s *Store) eachKept(ctx context.Context, by jobs.SeriesSplit, width, from, to int64,
	each func(figure, int64)) error {
	part, args := database.InWords("figure", []string{string(by), waitFigure, lengthFigure})
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var f figure
		var n float64
		err := r.Scan(&f.kind, &f.name, &f.at, &n)
		each(f, int64(n))
		return err
	}, fmt.Sprintf("SELECT figure, name, CAST(%s AS %s) AS step, SUM(runs) FROM cmsjobs_run_figures WHERE %s AND "+
		"at >= %d AND at < %d GROUP BY figure, name, 3", s.step("at", width), s.wholeNumber(), part, from, to), args...)
	if err != nil {
		return fmt.Errorf("reading what is counted of attempts: %w", err)
	}
	return nil
}

// pruneFigures counts what is over, before the runs of it are deleted, and
// forgets what no chart shows.
func (s *Store) pruneFigures(ctx context.Context) error {
	_, err := s.bringFigures(ctx)
	_, old := s.tables.Exec(ctx, s.tables.OwnDB, fmt.Sprintf("DELETE FROM cmsjobs_run_figures WHERE at < %s - %d",
		s.tables.MillisNow(), keepFigures))
	return errors.Join(err, old)
}
