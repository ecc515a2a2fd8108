package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Enqueue implements jobs.Enqueuer: all jobs, or none. Callers that come at the
// same time share a transaction.
//
// An error that Classify calls Unknown says that the jobs may be there or not:
// enqueue them again with the same UUIDs, and each is there once.
func (s *Store) Enqueue(ctx context.Context, list ...jobs.New) ([]jobs.Receipt, error) {
	prepared, err := s.prepare(list)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	receipts, err := s.combine.do(ctx, s, prepared)
	if err != nil {
		return nil, fmt.Errorf("enqueuing: %w", err)
	}
	s.wake(prepared)
	return receipts, nil
}

// EnqueueTx puts jobs into the queue within the caller's transaction: they are
// there when it commits, and not when it does not. Workers learn of them by
// their next poll. With Options.OwnDB, unique keys and UUIDs are noted outside
// of the transaction.
func (s *Store) EnqueueTx(ctx context.Context, t Tx, list ...jobs.New) ([]jobs.Receipt, error) {
	prepared, err := s.prepare(list)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	own := t
	if s.ownDB != s.db {
		own = s.ownDB
	}
	receipts, err := s.insertAll(ctx, tx{t, own}, prepared)
	if err != nil {
		return nil, fmt.Errorf("enqueuing: %w", err)
	}
	return receipts, nil
}

// prepare checks jobs before anything is written.
func (s *Store) prepare(list []jobs.New) ([]jobs.New, error) {
	prepared := make([]jobs.New, len(list))
	for i, n := range list {
		if err := n.Check(); err != nil {
			return nil, err
		}
		if size := len(n.Data) + len(n.Metadata); size > s.maxBytes {
			return nil, fmt.Errorf("the payload of %s has %d bytes, more than the server takes in one statement: raise max_allowed_packet", n.Kind, size)
		}
		if n.Queue == "" {
			n.Queue = s.o.DefaultQueue
		}
		prepared[i] = n
	}
	return prepared, nil
}

// wake tells workers of this process and of this host that jobs are due.
func (s *Store) wake(list []jobs.New) {
	told := map[string]bool{}
	for _, n := range list {
		queue := n.Queue
		if queue == "" {
			queue = s.o.DefaultQueue
		}
		if n.Delay == 0 && n.RunAt.IsZero() && !told[queue] {
			told[queue] = true
			s.o.Wake(queue)
		}
	}
}

// insertAll inserts jobs in the caller's transaction. Jobs that carry a name
// (UUID or unique key) go one by one, the others in large statements.
func (s *Store) insertAll(ctx context.Context, t tx, list []jobs.New) ([]jobs.Receipt, error) {
	receipts := make([]jobs.Receipt, len(list))
	var plain []jobs.New
	var places []int
	for i, n := range list {
		if n.Queue == "" {
			n.Queue = s.o.DefaultQueue
		}
		if n.UUID == "" && n.UniqueKey == "" {
			n.UUID = newUUID()
			plain, places = append(plain, n), append(places, i)
			continue
		}
		receipt, err := s.insertNamed(ctx, t, n)
		if err != nil {
			return nil, err
		}
		receipts[i] = receipt
	}
	ids, err := s.insertPlain(ctx, t.main, plain)
	if err != nil {
		return nil, err
	}
	for i, place := range places {
		receipts[place] = jobs.Receipt{ID: ids[i], UUID: plain[i].UUID}
	}
	return receipts, nil
}

// newUUID is a version 7: made in order, it costs the history's index least.
func newUUID() string {
	id, err := uuid.NewV7()
	if err != nil { // the system has no randomness: google/uuid panics likewise
		return uuid.NewString()
	}
	return id.String()
}

// insertPlain inserts jobs without names and returns their row numbers.
func (s *Store) insertPlain(ctx context.Context, q Tx, list []jobs.New) ([]int64, error) {
	var ids []int64
	now := s.now()
	if len(list) > 3 { // read once: the server would reckon it anew for each row
		read, err := s.databaseNow(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("inserting into %s: %w", s.t.shape().plain, err)
		}
		now = strconv.FormatInt(read, 10)
	}
	for len(list) > 0 {
		var values []string
		var args []any
		size := 0
		for len(values) < len(list) && len(values) < 1000 && len(args)+8 <= s.d.maxParams {
			n := list[len(values)]
			payload, err := jobs.EncodePayload(n)
			if err != nil {
				return nil, err
			}
			if size += len(payload) + 200; size > s.maxBytes/2 && len(values) > 0 {
				break
			}
			v, a := s.t.row(n, string(payload), dueOf(n, now), now, s.attemptsOf(n))
			values, args = append(values, v), append(args, a...)
		}
		made, err := s.insert(ctx, q, values, args)
		if err != nil {
			return nil, fmt.Errorf("inserting into %s: %w", s.t.shape().plain, err)
		}
		ids, list = append(ids, made...), list[len(values):]
	}
	return ids, nil
}

// insert runs one INSERT of several rows and says which numbers they got.
func (s *Store) insert(ctx context.Context, q Tx, values []string, args []any) ([]int64, error) {
	statement := "INSERT INTO " + s.t.shape().name + " (" + s.t.insert() + ") VALUES " + strings.Join(values, ",")
	if s.d.name != "mysql" {
		var ids []int64
		err := s.query(ctx, q, func(r *sql.Rows) error {
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
	s.asked.Add(1)
	r, err := q.ExecContext(ctx, sqlx.Rebind(s.d.bind, statement), args...)
	if err != nil {
		return nil, err
	}
	first, err := r.LastInsertId()
	if err != nil {
		return nil, err
	}
	step := int64(1)
	if len(values) > 1 { // a Galera node counts in steps of the cluster's size
		if _, err := s.one(ctx, q, []any{&step}, "SELECT @@auto_increment_increment"); err != nil {
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
func dueOf(n jobs.New, now string) string {
	if !n.RunAt.IsZero() {
		unix := n.RunAt.Unix()
		if n.RunAt.Nanosecond() > 0 {
			unix++ // nothing runs early
		}
		return fmt.Sprint(max(unix, 0))
	}
	return fmt.Sprintf("%s + %d", now, seconds(n.Delay))
}

// attemptsOf is the row's own limit where the table has a column for it.
func (s *Store) attemptsOf(n jobs.New) int {
	if n.MaxAttempts > 0 {
		return n.MaxAttempts
	}
	if entry, ok := s.o.Registry.Lookup(n.Kind); ok {
		return entry.Policy.MaxAttempts
	}
	return jobs.DefaultPolicy().MaxAttempts
}

// errLoop says that a name changed hands again and again.
var errLoop = errors.New("the unique key is taken and freed faster than it can be read; try again")

// insertNamed inserts one job unless its UUID or unique key is in use.
func (s *Store) insertNamed(ctx context.Context, t tx, n jobs.New) (jobs.Receipt, error) {
	var names []string
	if n.UniqueKey != "" {
		names = append(names, uniqueName("key", n.UniqueKey))
	}
	if n.UUID != "" {
		names = append(names, uniqueName("uuid", n.UUID))
		if ended, found, err := s.endedRun(ctx, t.own, n.UUID); err != nil || found {
			return ended, err
		}
	} else {
		n.UUID = newUUID()
	}
	for i, name := range names {
		existing, err := s.takeName(ctx, t, name, n.UUID)
		if err != nil {
			return jobs.Receipt{}, err
		}
		if existing != nil {
			if i > 0 { // the first name was taken for nothing
				_, err = s.exec(ctx, t.own, "DELETE FROM cmsjobs_unique WHERE name = ? AND job_id = 0", names[0])
			}
			return *existing, err
		}
	}
	ids, err := s.insertPlain(ctx, t.main, []jobs.New{n})
	if err != nil {
		return jobs.Receipt{}, err
	}
	in, args := inWords("name", names)
	if _, err := s.exec(ctx, t.own, "UPDATE cmsjobs_unique SET job_id = ? WHERE "+in, append([]any{ids[0]}, args...)...); err != nil {
		return jobs.Receipt{}, fmt.Errorf("noting unique keys: %w", err)
	}
	return jobs.Receipt{ID: ids[0], UUID: n.UUID}, nil
}

// uniqueName keeps UUIDs and keys apart in one column.
func uniqueName(sort, name string) string {
	if full := sort + ":" + name; len(full) <= 191 {
		return full
	}
	return sort + "#" + uuid.NewSHA1(namespace, []byte(name)).String()
}

// takeName takes a name for the job uuid. Where a live job has it, that job is
// returned; where its job is gone (settled by PHP, deleted by hand), the name
// is taken over.
func (s *Store) takeName(ctx context.Context, t tx, name, id string) (*jobs.Receipt, error) {
	insert := s.d.insertOrSkip("cmsjobs_unique", "name, job_id, uuid, created_at", "(?, 0, ?, "+s.millis()+")", "name")
	for range 5 {
		n, err := s.exec(ctx, t.own, insert, name, id)
		if err != nil {
			return nil, fmt.Errorf("taking a unique key: %w", err)
		}
		if n > 0 {
			return nil, nil
		}
		var r jobs.Receipt
		found, err := s.one(ctx, t.own, []any{&r.ID, &r.UUID}, "SELECT job_id, uuid FROM cmsjobs_unique WHERE name = ?"+s.d.forUpdate, name)
		if err != nil {
			return nil, fmt.Errorf("reading a unique key: %w", err)
		}
		if !found {
			continue
		}
		alive, err := s.alive(ctx, t.main, r)
		if err != nil {
			return nil, err
		}
		if alive {
			r.Existing = true
			return &r, nil
		}
		if _, err := s.exec(ctx, t.own, "DELETE FROM cmsjobs_unique WHERE name = ? AND job_id = ? AND uuid = ?", name, r.ID, r.UUID); err != nil {
			return nil, fmt.Errorf("clearing a void unique key: %w", err)
		}
	}
	return nil, errLoop
}

// alive says whether the job is still in its table, and is the same one: row
// numbers come again after a TRUNCATE.
func (s *Store) alive(ctx context.Context, q Tx, r jobs.Receipt) (bool, error) {
	var payload []byte
	t := s.t.shape()
	found, err := s.one(ctx, q, []any{&payload}, "SELECT "+t.payload+" FROM "+t.name+" WHERE id = ?", r.ID)
	if err != nil || !found {
		return false, err
	}
	e, _, _ := jobs.Parse(payload, s.known) // whose it is does not matter here
	return e.UUID == r.UUID, nil
}

// endedRun finds a job of this UUID that has ended already: enqueuing it again
// would run it twice.
func (s *Store) endedRun(ctx context.Context, q Tx, id string) (jobs.Receipt, bool, error) {
	r := jobs.Receipt{UUID: id, Existing: true}
	found, err := s.one(ctx, q, []any{&r.ID}, "SELECT job_id FROM cmsjobs_runs WHERE uuid = ? AND outcome IN ('completed','failed','cancelled') ORDER BY id DESC LIMIT 1", id)
	if err != nil {
		return r, false, fmt.Errorf("looking for an earlier job of this UUID: %w", err)
	}
	return r, found, nil
}
