package history

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// foreignSample is how many rows of a queue are looked at to say how many are
// PHP's own.
const foreignSample = 1000

// Stats counts jobs by state and by queue. PHP's own rows are counted apart,
// in long queues by a sample.
func (s *Store) Stats(ctx context.Context) (jobs.Stats, error) {
	var st jobs.Stats
	served, err := s.served(ctx)
	if err != nil {
		return st, err
	}
	if err := s.queueStats(ctx, &st, served); err != nil {
		return st, err
	}
	if err := s.addForeign(ctx, &st); err != nil {
		return st, err
	}
	served.addTo(&st)
	if err := s.historyStats(ctx, &st); err != nil {
		return st, err
	}
	for _, q := range append(slices.Clone(st.Queues), st.More) {
		st.Queued, st.Delayed, st.Foreign, st.Processing = st.Queued+q.Queued, st.Delayed+q.Delayed, st.Foreign+
			q.Foreign, st.Processing+q.Processing
		st.Oldest = max(st.Oldest, q.Oldest)
	}
	return st, nil
}

// keepFew leaves jobs.MaxQueues queues, those that are worked or paused first, and counts
// the others together: programs that write rows choose the names, and as many as they like.
func keepFew(st *jobs.Stats, served served) {
	if len(st.Queues) <= jobs.MaxQueues {
		return
	}
	first := 0
	last := func(q jobs.QueueStats) int {
		if served.paused[q.Queue] || served.workers[q.Queue]+served.php[q.Queue] > 0 {
			return 0
		}
		return 1
	}
	for _, q := range st.Queues {
		first += 1 - last(q)
	}
	slices.SortStableFunc(st.Queues, func(a, b jobs.QueueStats) int {
		return cmp.Or(last(a)-last(b), cmp.Compare(b.Waiting()+b.Processing, a.Waiting()+a.Processing))
	})
	few := max(first, jobs.MaxQueues)
	for _, q := range st.Queues[few:] {
		addMore(st, q)
	}
	st.Queues = st.Queues[:few]
}

func addMore(st *jobs.Stats, q jobs.QueueStats) {
	st.MoreQueues++
	st.More.Queued += q.Queued
	st.More.Delayed += q.Delayed
	st.More.Processing += q.Processing
	st.More.Oldest = max(st.More.Oldest, q.Oldest)
}

// tellable says that a queue's name can be shown, paused and made a figure of.
func tellable(name string) bool {
	return name != "" && len(name) <= jobs.MaxQueueName && utf8.ValidString(name)
}

func (s *Store) queueStats(ctx context.Context, st *jobs.Stats, served served) error {
	t := s.tables.Layout.Table()
	due := t.Due.Name + " <= " + t.Due.FromExpr(s.tables.SecondsNow())
	sum := func(condition string) string { return "SUM(CASE WHEN " + condition + " THEN 1 ELSE 0 END)" }
	statement := fmt.Sprintf("SELECT queue, %s, %s, %s, MIN(CASE WHEN %s AND %s THEN %s END), %s FROM %s GROUP BY "+
		"queue ORDER BY queue",
		sum(s.tables.Layout.Waiting()+" AND "+due), sum(s.tables.Layout.Waiting()+" AND NOT ("+due+")"),
		sum("NOT ("+s.tables.Layout.Waiting()+")"), s.tables.Layout.Waiting(), due, t.Due.Seconds(),
		s.tables.SecondsNow(), t.Name)
	err := s.tables.Query(ctx, s.tables.DB, func(r *sql.Rows) error {
		var q jobs.QueueStats
		var oldest sql.NullInt64
		var now int64
		if err := r.Scan(&q.Queue, &q.Queued, &q.Delayed, &q.Processing, &oldest, &now); err != nil {
			return err
		}
		if oldest.Valid {
			q.Oldest = time.Duration(max(now-oldest.Int64, 0)) * time.Second
		}
		if !tellable(q.Queue) {
			addMore(st, q)
			return nil
		}
		if st.Queues = append(st.Queues, q); len(st.Queues) > 10*jobs.MaxQueues {
			keepFew(st, served)
		}
		return nil
	}, statement)
	keepFew(st, served)
	if err != nil {
		return fmt.Errorf("counting the jobs of queues: %w", err)
	}
	return nil
}

// addForeign takes PHP's own rows out of the waiting ones.
func (s *Store) addForeign(ctx context.Context, st *jobs.Stats) error {
	var names []any
	for i := range st.Queues {
		q := &st.Queues[i]
		if err := s.foreignOf(ctx, q, "queue = ?", q.Queue); err != nil {
			return fmt.Errorf("counting PHP's own jobs of %s: %w", q.Queue, err)
		}
		names = append(names, q.Queue)
	}
	if st.MoreQueues == 0 {
		return nil
	}
	where := "1 = 1"
	if len(names) > 0 {
		where = "queue NOT IN (" + database.Marks(len(names)) + ")"
	}
	if err := s.foreignOf(ctx, &st.More, where, names...); err != nil {
		return fmt.Errorf("counting PHP's own jobs of other queues: %w", err)
	}
	return nil
}

// foreignOf takes PHP's own rows out of the waiting ones of the queues that where names.
func (s *Store) foreignOf(ctx context.Context, q *jobs.QueueStats, where string, args ...any) error {
	t := s.tables.Layout.Table()
	var looked, foreign, foreignDue int64
	due := t.Due.Name + " <= " + t.Due.FromExpr(s.tables.SecondsNow())
	statement := fmt.Sprintf("SELECT COUNT(*), COALESCE(SUM(php), 0), COALESCE(SUM(php * due), 0) FROM (SELECT "+
		"CASE WHEN %s THEN 1 ELSE 0 END AS php, CASE WHEN %s THEN 1 ELSE 0 END AS due "+
		"FROM %s WHERE %s AND %s ORDER BY id LIMIT %d) AS sample",
		s.tables.Dialect.OpensWith(t.Payload, tables.PHPJob), due, t.Name, where, s.tables.Layout.Waiting(),
		foreignSample)
	if _, err := s.tables.QueryRow(ctx, s.tables.DB, []any{&looked, &foreign, &foreignDue}, statement,
		args...); err != nil {
		return err
	}
	if looked == foreignSample {
		waiting := q.Queued + q.Delayed
		foreign, foreignDue = waiting*foreign/looked, waiting*foreignDue/looked
	}
	foreignDue = min(foreignDue, q.Queued)
	later := min(foreign-foreignDue, q.Delayed)
	q.Queued, q.Delayed, q.Foreign = q.Queued-foreignDue, q.Delayed-later, foreignDue+later
	return nil
}

// served says which queues are paused, and how many live workers listen to each.
type served struct {
	paused  map[string]bool
	workers map[string]int
	php     map[string]int // PHP processes
}

func (s *Store) served(ctx context.Context) (v served, err error) {
	if v.paused, err = s.pausedQueues(ctx); err != nil {
		return v, err
	}
	v.workers, v.php = map[string]int{}, map[string]int{}
	err = s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var list, php string
		if err := r.Scan(&list, &php); err != nil {
			return err
		}
		var processes []jobs.PHPProcess
		_ = json.Unmarshal([]byte(php), &processes) // a worker of another version may write otherwise
		for _, p := range processes {
			v.php[p.Queue]++
		}
		var queues []string
		if json.Unmarshal([]byte(list), &queues) != nil {
			queues = strings.Split(list, ",")
		}
		for _, q := range queues {
			v.workers[q]++
		}
		return nil
	}, fmt.Sprintf("SELECT queues, php FROM cmsjobs_workers WHERE heartbeat_at > %s - %d", s.tables.MillisNow(),
		workerAlive.Milliseconds()))
	if err != nil {
		return v, fmt.Errorf("reading which queues are worked: %w", err)
	}
	return v, nil
}

// names are the queues that are paused, or that somebody works on.
func (v served) names() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(v.paused)), maps.Keys(v.workers))
	names = slices.AppendSeq(names, maps.Keys(v.php))
	slices.Sort(names)
	return slices.Compact(names)
}

// addTo notes it with each queue, and adds those that have no jobs.
func (v served) addTo(st *jobs.Stats) {
	known := map[string]bool{}
	for _, q := range st.Queues {
		known[q.Queue] = true
	}
	for _, queue := range v.names() { // worked or paused, and empty
		if !known[queue] {
			st.Queues = append(st.Queues, jobs.QueueStats{Queue: queue})
		}
	}
	for i := range st.Queues {
		q := &st.Queues[i]
		q.Paused, q.Workers, q.PHPProcesses = v.paused[q.Queue], v.workers[q.Queue], v.php[q.Queue]
	}
	slices.SortFunc(st.Queues, func(a, b jobs.QueueStats) int { return strings.Compare(a.Queue, b.Queue) })
}
