package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// The history has the columns that the service writes.
const runColumns = "job_id, uuid, type, queue, attempt, outcome, worker, lease, ended_at, duration_ms, wait_ms, " +
	"created_at"

// lease is what the loop writes where a worker's token stands.
const lease = "0123456789abcdef0123456789abcdef"

// reservedAt is what the loop reserves rows by. It is far in the future and always the
// same, so that the statements need not carry it from one transaction to the next.
const reservedAt = 2_000_000_000

var errLost = errors.New("a row is not as the loop left it")

// choose picks the way that takes the fewest trips.
func (l *loop) choose() error {
	l.swap = map[string]func(context.Context, batch, batch) error{"MariaDB": l.onMariaDB, "MySQL": l.onMySQL,
		"PostgreSQL": l.onPostgres, "SQLite": l.onSQLite}[l.server]
	if l.swap == nil {
		return fmt.Errorf("there is no server %q", l.server)
	}
	return nil
}

// which is the condition for rows by their key: a stretch of numbers where there is no
// gap between them.
func (b batch) which() string {
	first, last := b[0].ID, b[len(b)-1].ID
	if len(b) > 2 && last-first == int64(len(b)-1) {
		return fmt.Sprintf("id BETWEEN %d AND %d", first, last)
	}
	return "id IN (" + strings.Trim(strings.ReplaceAll(fmt.Sprint(b.ids()), " ", ","), "[]") + ")"
}

func (b batch) deletion() string {
	return fmt.Sprintf("DELETE FROM jobs WHERE %s AND attempts = 1 AND reserved_at = %d", b.which(), reservedAt)
}

func (b batch) reservation() string {
	return fmt.Sprintf("UPDATE jobs SET reserved_at = %d, attempts = attempts + 1 WHERE %s AND reserved_at IS NULL "+
		"AND attempts = 0", reservedAt, b.which())
}

// wait is how long a job waited, in ms.
func (r row) wait(now time.Time) int64 { return max(now.UnixMilli()-r.Available*1000, 0) }

// history is the INSERT of the lines. Many lines are read out of one JSON text where the
// server can do that: it costs less than VALUES.
func (l *loop) history(b batch) string {
	now := time.Now()
	var s strings.Builder
	s.WriteString("INSERT INTO cmsjobs_runs (" + runColumns + ") ")
	if len(b) >= 8 && l.server != "SQLite" {
		fmt.Fprintf(&s, "SELECT j, u, '%s', 'default', 1, 'completed', '%s', '%s', %d, 0, w, c FROM JSON_TABLE('[",
			b[0].jobType, l.worker, lease, now.UnixMilli())
		for i, r := range b {
			if i > 0 {
				s.WriteByte(',')
			}
			fmt.Fprintf(&s, `[%d,"%s",%d,%d]`, r.ID, r.uuid, r.wait(now), r.Created*1000)
		}
		s.WriteString("]', '$[*]' COLUMNS (j BIGINT PATH '$[0]', u VARCHAR(191) PATH '$[1]', w BIGINT PATH '$[2]', c " +
			"BIGINT PATH '$[3]')) t")
		return s.String()
	}
	s.WriteString("VALUES ")
	for i, r := range b {
		if i > 0 {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, "(%d,'%s','%s','default',1,'completed','%s','%s',%d,0,%d,%d)", r.ID, r.uuid, r.jobType,
			l.worker, lease, now.UnixMilli(), r.wait(now), r.Created*1000)
	}
	return s.String()
}

// onMariaDB sends one compound statement.
func (l *loop) onMariaDB(ctx context.Context, done, next batch) error {
	var s strings.Builder
	s.WriteString("BEGIN NOT ATOMIC DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; START " +
		"TRANSACTION; ")
	lost := "IF ROW_COUNT() <> %d THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'lost'; END IF; "
	if len(done) > 0 {
		fmt.Fprintf(&s, "%s; "+lost+"%s; ", done.deletion(), len(done), l.history(done))
	}
	if len(next) > 0 {
		fmt.Fprintf(&s, "%s; "+lost, next.reservation(), len(next))
	}
	s.WriteString("COMMIT; END")
	_, err := l.db.ExecContext(ctx, s.String())
	return err
}

// onMySQL sends one packet of several statements.
func (l *loop) onMySQL(ctx context.Context, done, next batch) error {
	statements := []string{"START TRANSACTION"}
	if len(done) > 0 {
		statements = append(statements, done.deletion(), database.Guard("@ended", "1", len(done)), l.history(done))
	}
	if len(next) > 0 {
		statements = append(statements, next.reservation(), database.Guard("@taken", "1", len(next)))
	}
	_, err := database.PacketsOf(l.db).Send(ctx, l.db, append(statements, "COMMIT"), nil)
	return err
}

// postgresSwap is the transaction as one statement, always the same, so that the server
// plans it once.
const postgresSwap = `WITH gone AS (DELETE FROM jobs WHERE id = ANY(CAST($1 AS bigint[])) AND attempts = 1 AND
	reserved_at = $2 RETURNING id),
ended AS (INSERT INTO cmsjobs_runs (` + runColumns + `) SELECT t.id, t.uuid, $3, 'default', 1, 'completed', $4, $5, $6,
	0, t.wait, t.created FROM unnest(CAST($1 AS bigint[]), CAST($7 AS text[]), CAST($8 AS bigint[]),
	CAST($9 AS bigint[])) AS t (id, uuid, wait, created) JOIN gone ON gone.id = t.id RETURNING job_id),
won AS (UPDATE jobs SET reserved_at = $2, attempts = attempts + 1 WHERE id = ANY(CAST($10 AS bigint[])) AND
	reserved_at IS NULL AND attempts = 0 AND (SELECT COUNT(*) FROM gone) = $11 RETURNING id)
SELECT (SELECT COUNT(*) FROM ended), (SELECT COUNT(*) FROM won)`

func (l *loop) onPostgres(ctx context.Context, done, next batch) error {
	now := time.Now()
	uuids, waits, created := make([]string, len(done)), make([]int64, len(done)), make([]int64, len(done))
	jobType := ""
	for i, r := range done {
		uuids[i], waits[i], created[i], jobType = r.uuid, r.wait(now), r.Created*1000, r.jobType
	}
	var ended, won int
	err := l.db.QueryRowContext(ctx, postgresSwap, done.ids(), reservedAt, jobType, l.worker, lease, now.UnixMilli(),
		uuids, waits, created, next.ids(), len(done)).Scan(&ended, &won)
	if err == nil && (ended != len(done) || won != len(next)) {
		err = errLost
	}
	return err
}

// onSQLite needs no trips: the statements go one by one.
func (l *loop) onSQLite(ctx context.Context, done, next batch) error {
	return database.InTx(ctx, l.db, "the bare loop", func(t *sqlx.Tx) error {
		for _, s := range []struct {
			want       int
			statements func() []string
		}{{len(done), func() []string { return []string{done.deletion(), l.history(done)} }},
			{len(next), func() []string { return []string{next.reservation()} }}} {
			if s.want == 0 {
				continue
			}
			for _, statement := range s.statements() {
				r, err := t.ExecContext(ctx, statement)
				if err != nil {
					return err
				}
				if n, err := r.RowsAffected(); err != nil || n != int64(s.want) {
					return errors.Join(errLost, err)
				}
			}
		}
		return nil
	})
}
