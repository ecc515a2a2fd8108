package queue

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/groupcommit"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// insertPlain inserts jobs without names and returns their row numbers.
func (s *Store) insertPlain(ctx context.Context, q tables.Tx, list []jobs.Spec) ([]int64, error) {
	var ids []int64
	now := s.tables.SecondsNow()
	if len(list) > 3 { // read once: the server would compute it again for each row
		read, err := s.tables.ReadClock(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("inserting into %s: %w", s.tables.Layout.Table().Plain, err)
		}
		now = strconv.FormatInt(read, 10)
	}
	for len(list) > 0 {
		var values []string
		var args []any
		size := 0
		for len(values) < len(list) && len(values) < 1000 && len(args)+8 <= s.tables.Dialect.MaxParams {
			n := list[len(values)]
			payload, err := jobs.EncodePayload(n)
			if err != nil {
				return nil, err
			}
			if size += len(payload) + 200; size > s.tables.MaxBytes/2 && len(values) > 0 {
				break
			}
			v, a := s.tables.Layout.Row(n, string(payload), dueOf(n, now), now, s.attemptsOf(n))
			values, args = append(values, v), append(args, a...)
		}
		made, err := s.insert(ctx, q, values, args)
		if err != nil {
			return nil, fmt.Errorf("inserting into %s: %w", s.tables.Layout.Table().Plain, err)
		}
		ids, list = append(ids, made...), list[len(values):]
	}
	return ids, nil
}

// insert runs one INSERT of several rows and says which numbers they got.
func (s *Store) insert(ctx context.Context, q tables.Tx, values []string, args []any) ([]int64, error) {
	statement := "INSERT INTO " + s.tables.Layout.Table().Name + " (" + s.tables.Layout.Insert() + ") VALUES " +
		strings.Join(values, ",")
	if s.tables.Dialect.Returning {
		var ids []int64
		err := s.tables.Query(ctx, q, func(r *sql.Rows) error {
			var id int64
			err := r.Scan(&id)
			ids = append(ids, id)
			return err
		}, statement+" RETURNING id", args...)
		if err == nil && len(ids) != len(values) {
			err = fmt.Errorf("%d of %d rows were inserted", len(ids), len(values))
		}
		return ids, err
	}
	s.tables.Asked.Add(1)
	r, err := q.ExecContext(ctx, sqlx.Rebind(s.tables.Dialect.Bind, statement), args...)
	if err != nil {
		return nil, err
	}
	first, err := r.LastInsertId()
	if err != nil {
		return nil, err
	}
	step := int64(1)
	if len(values) > 1 { // a Galera node counts in steps of the cluster's size
		if _, err := s.tables.QueryRow(ctx, q, []any{&step}, "SELECT @@auto_increment_increment"); err != nil {
			return nil, err
		}
	}
	ids := make([]int64, len(values))
	for i := range ids { // a simple INSERT gets consecutive numbers in every lock mode
		ids[i] = first + int64(i)*step
	}
	return ids, nil
}

// dueOf is when the job falls due, as an expression of Unix seconds; so is now.
func dueOf(n jobs.Spec, now string) string {
	if !n.RunAt.IsZero() {
		unix := n.RunAt.Unix()
		if n.RunAt.Nanosecond() > 0 {
			unix++ // nothing runs early
		}
		return fmt.Sprint(max(unix, 0))
	}
	return fmt.Sprintf("%s + %d", now, tables.WholeSeconds(n.Delay))
}

// attemptsOf is the row's own limit where the table has a column for it.
func (s *Store) attemptsOf(n jobs.Spec) int {
	if n.MaxAttempts > 0 {
		return n.MaxAttempts
	}
	if entry, ok := s.tables.Options.Registry.Known(n.Type); ok {
		return entry.Policy.MaxAttempts
	}
	return jobs.DefaultPolicy().MaxAttempts
}

// newUUID is a version 7: made in order, it costs the history's index least.
func newUUID() string {
	id, err := uuid.NewV7()
	if err != nil { // the system has no randomness: google/uuid panics likewise
		return uuid.NewString()
	}
	return id.String()
}

// combinedJobs is how many jobs share a transaction at most.
const combinedJobs = 500

// newEnqueues puts the enqueues of callers that come at the same time into one
// transaction.
func (s *Store) newEnqueues() *groupcommit.Group[*enqueueRequest] {
	return groupcommit.New(groupcommit.Config[*enqueueRequest]{
		Commit:  s.insertTogether,
		Size:    func(r *enqueueRequest) int { return len(r.list) },
		MaxSize: combinedJobs,
		Final:   func(err error) bool { return database.Classify(err).Unclear() },
	})
}

// insertTogether inserts the jobs of several callers, all or none.
func (s *Store) insertTogether(ctx context.Context, requests []*enqueueRequest) error {
	all := requests[0].list
	if len(requests) > 1 {
		all = nil
		for _, r := range requests {
			all = append(all, r.list...)
		}
	}
	receipts, err := s.insertInTx(ctx, all)
	if err != nil {
		return err
	}
	for _, r := range requests {
		r.receipts, receipts = receipts[:len(r.list):len(r.list)], receipts[len(r.list):]
	}
	return nil
}

func (s *Store) insertInTx(ctx context.Context, list []jobs.Spec) (receipts []jobs.Receipt, err error) {
	if s.single(list) {
		receipts, err = s.insertAll(ctx, tables.Transaction{Main: s.tables.DB, Own: s.tables.OwnDB}, list)
		if database.Classify(err) != database.RetryTransaction {
			return receipts, err
		}
	}
	err = s.tables.InTx(ctx, "inserting jobs", func(t tables.Transaction) error {
		receipts, err = s.insertAll(ctx, t, list)
		return err
	})
	return receipts, err
}

// single says that the list is one statement, which needs no transaction.
func (s *Store) single(list []jobs.Spec) bool {
	return len(list) == 1 && list[0].UUID == "" && list[0].UniqueKey == ""
}
