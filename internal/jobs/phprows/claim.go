package phprows

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/php"
)

// errContended says that some rows are no longer as they were read: the
// transaction is undone, and they are claimed one by one.
var errContended = errors.New("another worker was faster")

// Claim implements php.Source.
func (s *Store) Claim(ctx context.Context, r php.Request) ([]php.Job, error) {
	if r.Limit <= 0 {
		return nil, nil
	}
	l := s.lookOf(r.Queue)
	select {
	case l.alone <- struct{}{}:
		defer func() { <-l.alone }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.SetLeaseLength(r.Lease)
	if err := s.resolve(ctx); err != nil {
		return nil, s.NoteTrouble(err)
	}
	if paused, err := s.paused(ctx, l, r.Queue); paused || err != nil {
		return nil, s.NoteTrouble(err)
	}
	found, now, unseen := s.find(ctx, l, r.Queue, r.Limit)
	if unseen != nil && !errors.Is(unseen, jobs.ErrUnseen) {
		return nil, s.NoteTrouble(unseen)
	}
	found, err := s.rescuable(ctx, found)
	if err != nil || len(found) == 0 {
		return nil, errors.Join(err, unseen)
	}
	until := s.LeaseMark(now, int64(r.Lease.Seconds()))
	if r.Before != nil {
		leases := make([]jobs.Lease, len(found))
		for i, x := range found {
			leases[i] = s.leaseOn(x, "", until)
		}
		r.Before(leases)
	}
	taken, err := s.take(ctx, r.Queue, found, until, r.Lease)
	if len(taken) == 0 {
		return nil, errors.Join(s.NoteTrouble(err), unseen)
	}
	// What is claimed must reach the pool, whatever comes now; an error that lasts
	// comes back with the next claim.
	token := tables.NewToken(s.worker)
	list := make([]php.Job, len(taken))
	for i, x := range taken {
		fault := s.readWhole(ctx, x)
		list[i] = s.job(x, r.Queue, token, until)
		list[i].Fault = fault
	}
	s.addCrashes(ctx, list)
	return list, nil
}

// rescuable leaves out rows whose lease ran out where that proves nothing now.
func (s *Store) rescuable(ctx context.Context, found []*row) ([]*row, error) {
	if !slices.ContainsFunc(found, func(r *row) bool { return r.Rescued }) {
		return found, nil
	}
	may, err := s.MayRescue(ctx)
	if err != nil || may {
		return found, err
	}
	return slices.DeleteFunc(found, func(r *row) bool { return r.Rescued }), nil
}

// take claims rows, all at once or, where others claim too, each by itself.
func (s *Store) take(ctx context.Context, queue string, found []*row, until int64, lease time.Duration) ([]*row,
	error) {
	slices.SortFunc(found, func(a, b *row) int { return int(min(max(a.ID-b.ID, -1), 1)) }) // the one order of locks
	if s.MaxBatch > 1 {
		err := s.takeUnchanged(ctx, queue, found, until)
		if err == nil {
			return found, nil
		}
		if !errors.Is(err, errContended) {
			return nil, s.noteInDoubt(found, until, lease, err)
		}
	}
	var taken []*row
	for _, r := range found {
		switch err := s.takeUnchanged(ctx, queue, []*row{r}, until); {
		case err == nil:
			taken = append(taken, r)
		case !errors.Is(err, errContended):
			return taken, s.noteInDoubt([]*row{r}, until, lease, err)
		}
	}
	return taken, nil
}

// takeUnchanged claims all rows, if all are as they were read, and notes in the
// history whose worker was lost.
func (s *Store) takeUnchanged(ctx context.Context, queue string, rows []*row, until int64) error {
	type state struct {
		attempts int
		locked   sql.NullInt64
		seen     int64
	}
	groups, order := map[state][]*row{}, []state(nil)
	for _, r := range rows {
		k := state{r.Attempts, r.Locked, r.Seen}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], r)
	}
	return s.InTx(ctx, "claiming jobs of PHP", func(t tables.Transaction) error {
		for _, k := range order {
			in, inArgs := s.Dialect.IDRanges(idsOf(groups[k]))
			set, args := s.Layout.ClaimRows(until, "")
			cond, more := s.Layout.Unchanged(&groups[k][0].Candidate)
			n, err := s.Exec(ctx, t.Main, "UPDATE "+s.Layout.Table().Name+" SET "+set+" WHERE "+in+" AND "+cond,
				slices.Concat(args, inArgs, more)...)
			if err != nil {
				return err
			}
			if n != int64(len(groups[k])) {
				return errContended
			}
		}
		return s.recordLost(ctx, t.Own, queue, rows)
	})
}

func idsOf(rows []*row) []int64 {
	list := make([]int64, len(rows))
	for i, r := range rows {
		list[i] = r.ID
	}
	return list
}

// readWhole reads a payload of which only the beginning was read.
func (s *Store) readWhole(ctx context.Context, r *row) error {
	if r.whole {
		return nil
	}
	if r.Size > php.MaxPayload {
		return fmt.Errorf("the payload has %d bytes, %d are handed to PHP at most: put large things into a file and "+
			"name it", r.Size, php.MaxPayload)
	}
	t := s.Layout.Table()
	if _, err := s.QueryRow(ctx, s.DB, []any{&r.Payload}, fmt.Sprintf("SELECT %s FROM %s WHERE id = %d", t.Payload,
		t.Name, r.ID)); err != nil {
		return fmt.Errorf("reading the payload: %w", err)
	}
	return nil
}

// addCrashes adds what the history knows of runs that ended with their process.
func (s *Store) addCrashes(ctx context.Context, list []php.Job) {
	byID := map[int64]*php.Job{}
	var uuids []string
	for i := range list {
		if j := &list[i]; j.Job.Attempt > 1 {
			byID[j.Job.ID], uuids = j, append(uuids, j.Job.UUID)
		}
	}
	if len(uuids) == 0 {
		return
	}
	in, args := database.InWords("uuid", uuids)
	err := s.Query(ctx, s.OwnDB, func(r *sql.Rows) error {
		var id int64
		var how sql.NullString
		if err := r.Scan(&id, &how); err != nil {
			return err
		}
		if j := byID[id]; j != nil {
			j.Crashes++
			j.LastCrash = strings.TrimPrefix(how.String, php.DiedInJob)
		}
		return nil
	}, "SELECT job_id, SUBSTR(error, 1, 4000) FROM cmsjobs_runs WHERE "+in+" AND outcome = '"+jobs.CrashedOutcome+
		"' AND lease <> '' ORDER BY id", args...)
	if err != nil {
		s.log().Warn("crashes of PHP's jobs not read; their attempts count all the same", "event",
			"php.crashes_unknown", "error", s.NoteTrouble(err))
	}
}

// noteInDoubt notes rows that a claim may hold whose answer was lost.
func (s *Store) noteInDoubt(rows []*row, until int64, lease time.Duration, err error) error {
	if !database.Classify(err).Unclear() {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rows {
		s.inDoubt[r.ID] = doubt{lease: s.leaseOn(r, "", until), at: s.Options.Clock().Add(lease * 3 / 4)}
	}
	return err
}

// resolve releases what unclear claims turn out to hold.
func (s *Store) resolve(ctx context.Context) error {
	s.mu.Lock()
	var ripe []php.Job
	now := s.Options.Clock()
	for id, d := range s.inDoubt {
		if now.After(d.at) {
			ripe = append(ripe, php.Job{Claimed: jobs.Claimed{Lease: d.lease}})
			delete(s.inDoubt, id)
		}
	}
	s.mu.Unlock()
	return s.Release(ctx, ripe)
}
