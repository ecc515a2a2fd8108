package phprows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/php"
	"github.com/cmsjobs/cmsjobs/internal/php/phpjob"
)

// errShort says that fewer rows than named were still held: the transaction is
// undone and split, until those that were lost stand alone.
var errShort = errors.New("a lease in the batch is lost")

// numbered is an end and its place in the caller's list.
type numbered struct {
	*php.End
	index int
}

// Settle implements php.Source. It writes many ends in one transaction; one whose
// lease is lost, or whose texts the database refuses, keeps no other from being
// written.
func (s *Store) Settle(ctx context.Context, ends []php.End) ([]error, error) {
	results := make([]error, len(ends))
	list := make([]numbered, len(ends))
	for i := range ends {
		list[i] = numbered{&ends[i], i}
	}
	for batch := range slices.Chunk(list, s.MaxBatch) {
		if err := s.settle(ctx, batch, results); err != nil {
			return nil, s.NoteTrouble(err)
		}
	}
	return results, nil
}

func (s *Store) settle(ctx context.Context, ends []numbered, results []error) error {
	err := s.together(ctx, ends)
	switch {
	case err == nil:
		for _, e := range ends {
			s.renewals.Forget(e.Job.Lease.ID)
		}
		return nil
	case !errors.Is(err, errShort) && database.Classify(err) != database.JobsFault:
		return err
	case len(ends) == 1 && errors.Is(err, errShort):
		return s.lost(ctx, ends[0], results)
	case len(ends) == 1:
		return s.plainer(ctx, ends[0], results, err)
	}
	half := len(ends) / 2
	if err := s.settle(ctx, ends[:half], results); err != nil {
		return err
	}
	return s.settle(ctx, ends[half:], results)
}

// lost says that a lease is lost, unless it was this end that took it: its answer
// may have been lost before. An end whose lease holds is written once more
// (Renewals.Held says why it was not).
func (s *Store) lost(ctx context.Context, e numbered, results []error) error {
	var one int
	written, err := s.QueryRow(ctx, s.OwnDB, []any{&one}, "SELECT 1 FROM cmsjobs_runs WHERE uuid = ? AND lease = ?",
		e.Job.Job.UUID, tables.RandomPart(e.Job.Lease.Token))
	if err != nil {
		return fmt.Errorf("settling jobs of PHP: %w", err)
	}
	if !written {
		held, err := s.renewals.Held(ctx, e.Job.Lease)
		if err != nil {
			return err
		}
		err = errShort
		if held {
			err = s.together(ctx, []numbered{e})
		}
		switch {
		case errors.Is(err, errShort):
			results[e.index] = jobs.ErrLeaseLost
		case err != nil:
			return err
		}
	}
	s.renewals.Forget(e.Job.Lease.ID)
	return nil
}

// plainer writes an end without what the database may have refused.
func (s *Store) plainer(ctx context.Context, e numbered, results []error, refused error) error {
	plain := *e.End
	plain.Lines = nil
	plain.Exception = "the database refused the whole text: " + jobs.PlainText(tables.FirstLine(e.Exception), 500)
	err := s.together(ctx, []numbered{{&plain, e.index}})
	switch {
	case errors.Is(err, errShort):
		return s.lost(ctx, e, results)
	case database.Classify(err) == database.JobsFault:
		results[e.index] = refused
		return nil
	}
	return err
}

// together is the transaction. What needs the lease comes first.
func (s *Store) together(ctx context.Context, ends []numbered) error {
	return s.InTx(ctx, "settling jobs of PHP", func(t tables.Transaction) error {
		for _, step := range []func(context.Context, tables.Transaction, []numbered) error{
			s.moveToFailed, s.change, s.record} {
			if err := step(ctx, t, ends); err != nil {
				return err
			}
		}
		return nil
	})
}

// moveToFailed copies failed jobs to failed_jobs as Laravel writes them.
func (s *Store) moveToFailed(ctx context.Context, t tables.Transaction, ends []numbered) error {
	failedAt := ""
	for _, e := range ends {
		if e.Outcome != php.Failed {
			continue
		}
		if failedAt == "" {
			now, err := s.ReadClock(ctx, t.Main)
			if err != nil {
				return err
			}
			failedAt = s.FailedAt(now)
		}
		if err := s.copyOne(ctx, t, e, failedAt); err != nil {
			return fmt.Errorf("writing %s: %w", s.Failed.Name, err)
		}
	}
	return nil
}

func (s *Store) copyOne(ctx context.Context, t tables.Transaction, e numbered, failedAt string) error {
	table, mark := s.Layout.Table(), "?"
	if s.Dialect.TypedSelect {
		mark = "CAST(? AS text)" // a SELECT's argument has no type there
	}
	columns, values := "connection, queue, exception, failed_at, payload",
		strings.Join([]string{mark, "queue", mark, failedAt, table.Payload}, ", ")
	args := []any{s.connection, tables.CutText(e.Exception)}
	if s.Failed.UUID {
		name, err := s.freeName(ctx, t, e.Job.Job.UUID)
		if err != nil {
			return err
		}
		columns, values, args = "uuid, "+columns, mark+", "+values, append([]any{name}, args...)
	}
	cond, more := s.Layout.Guard(e.Job.Lease, s.renewals.Tried(e.Job.Lease.ID))
	n, err := s.Exec(ctx, t.Main, fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s WHERE id = %d AND %s",
		s.Failed.Name, columns, values, table.Name, e.Job.Lease.ID, cond), append(args, more...)...)
	if err == nil && n != 1 {
		err = errShort
	}
	return err
}

// freeName is the job's UUID, or a fresh one: queue:retry inserts into jobs before it
// deletes from failed_jobs, so the row of the job's last failure may still be there.
func (s *Store) freeName(ctx context.Context, t tables.Transaction, name string) (string, error) {
	var one int
	taken, err := s.QueryRow(ctx, t.Main, []any{&one}, "SELECT 1 FROM "+s.Failed.Name+" WHERE uuid = ?", name)
	if taken {
		name = uuid.NewString()
	}
	return name, err
}

// change deletes rows and releases others, in as few statements as can be.
func (s *Store) change(ctx context.Context, t tables.Transaction, ends []numbered) error {
	type change struct {
		verb   string
		leases []jobs.Lease
	}
	var changes []*change
	byVerb := map[string]*change{}
	for _, e := range ends {
		verb := "DELETE FROM " + s.Layout.Table().Name
		if e.Outcome == php.Released || e.Outcome == php.Crashed {
			set, _ := s.Layout.Release(s.dueIn(e.Delay), jobs.Settlement{Outcome: jobs.Retried}, false)
			verb = "UPDATE " + s.Layout.Table().Name + " SET " + set
		}
		if byVerb[verb] == nil {
			byVerb[verb] = &change{verb: verb}
			changes = append(changes, byVerb[verb])
		}
		byVerb[verb].leases = append(byVerb[verb].leases, e.Job.Lease)
	}
	for _, c := range changes {
		for _, g := range s.renewals.ByGuard(c.leases) {
			in, args := s.Dialect.IDRanges(g.IDs)
			n, err := s.Exec(ctx, t.Main, c.verb+" WHERE "+in+" AND "+g.Cond, slices.Concat(args, g.Args)...)
			if err != nil {
				return err
			}
			if n != int64(len(g.IDs)) {
				return errShort
			}
		}
	}
	return nil
}

// dueIn is when a row is due again.
func (s *Store) dueIn(d time.Duration) string {
	return fmt.Sprintf("%s + %d", s.SecondsNow(), tables.WholeSeconds(d))
}

// record writes the history and what the jobs printed.
func (s *Store) record(ctx context.Context, t tables.Transaction, ends []numbered) error {
	runs := make([]tables.Run, len(ends))
	var lines []tables.JobLine
	for i, e := range ends {
		runs[i] = tables.Run{Job: e.Job.Job, Outcome: e.Word(), Worker: e.Worker,
			Lease:    tables.RandomPart(e.Job.Lease.Token),
			Duration: e.Duration, Wait: e.Wait, Error: e.Exception}
		runs[i].Job.Metadata, runs[i].Data = json.RawMessage(phpjob.Mark), phpjob.Keep(e.Job.Payload)
		for _, l := range e.Lines {
			lines = append(lines, tables.JobLine{UUID: e.Job.Job.UUID, Attempt: e.Job.Job.Attempt, LogLine: l})
		}
	}
	if err := s.InsertRuns(ctx, t.Own, runs); err != nil {
		return err
	}
	return s.InsertLines(ctx, t.Own, lines)
}
