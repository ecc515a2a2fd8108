package mail

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// batch is what one mail writes, or several that were sent at the same time:
// one transaction. What takes time is each question to the server: rows to add
// are gathered and go in one statement at the end, limits are read and written
// once, and a batch of a single statement needs no transaction around it.
type batch struct {
	db      *sqlx.DB
	options *sql.TxOptions
	tx      *sqlx.Tx // nil until a statement needs it
	// rows to add to the ledger, rows that end what a run began, and rows of
	// the log of attempts
	mails, answers, attempts [][]any
	limits                   limitRows
}

func newBatch(db *sqlx.DB, options *sql.TxOptions) *batch {
	return &batch{db: db, options: options, limits: limitRows{}}
}

// begin returns the transaction, which it begins for the first statement.
func (b *batch) begin(ctx context.Context) (*sqlx.Tx, error) {
	if b.tx != nil {
		return b.tx, nil
	}
	var err error
	b.tx, err = b.db.BeginTxx(ctx, b.options)
	return b.tx, err
}

// exec runs a statement written with ? for its arguments.
func (b *batch) exec(ctx context.Context, query string, args []any) (sql.Result, error) {
	tx, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	return tx.ExecContext(ctx, tx.Rebind(query), args...)
}

// commit writes what was gathered and makes everything durable. A recipient
// that is there already fails it.
func (b *batch) commit(ctx context.Context) error {
	if err := b.writeLimits(ctx); err != nil {
		return err
	}
	if b.tx == nil && len(b.answers)+len(b.attempts) == 0 && 0 < len(b.mails) && len(b.mails) <= chunk {
		query, args := insertion("INSERT INTO cmsjobs_mail ("+mailColumns+") VALUES ", b.mails)
		_, err := b.db.ExecContext(ctx, b.db.Rebind(query), args...)
		return err
	}
	if err := b.insert(ctx, "INSERT INTO cmsjobs_mail ("+mailColumns+") VALUES ", b.mails, ""); err != nil {
		return err
	}
	if err := b.insert(ctx, "INSERT INTO cmsjobs_mail ("+mailColumns+") VALUES ", b.answers,
		b.whereFree()); err != nil {
		return err
	}
	if err := b.insert(ctx, "INSERT INTO cmsjobs_mail_attempts ("+attemptColumns+") VALUES ", b.attempts,
		""); err != nil {
		return err
	}
	if b.tx == nil {
		return nil
	}
	return b.tx.Commit()
}

// rollback forgets what was not committed; after commit it does nothing.
func (b *batch) rollback() {
	if b.tx != nil {
		_ = b.tx.Rollback() // the error that led here says more
	}
}

const (
	mailColumns = "job_uuid, recipient, status, token, attempt, message_id, sender, subject, template, driver, " +
		"host, code, answer, created_at, updated_at"
	attemptColumns = "job_uuid, recipient, attempt, status, driver, host, code, answer, duration_ms, created_at"
)

// whereFree is the end of an insertion into cmsjobs_mail: a row that is there
// is written over where the same run claimed it, and where no run holds it and
// it is not settled. Other rows stay as they are.
func (b *batch) whereFree() string {
	d := database.Of(b.db)
	// What is asked for comes last: see OnConflict.
	columns := []string{"token", "attempt", "message_id", "driver", "host", "code", "answer", "updated_at", "status"}
	set := make([]string, len(columns))
	for i, c := range columns {
		set[i] = c + " = CASE WHEN cmsjobs_mail.token = " + d.Inserted("token") +
			" OR cmsjobs_mail.status IN ('deferred', 'expired', 'suppressed')" +
			" THEN " + d.Inserted(c) + " ELSE cmsjobs_mail." + c + " END"
	}
	return d.OnConflict("job_uuid, recipient", set...)
}

func (b *batch) insert(ctx context.Context, head string, rows [][]any, tail string) error {
	return inChunks(rows, func(part [][]any) error {
		query, args := insertion(head, part)
		if _, err := b.exec(ctx, query+tail, args); err != nil {
			return fmt.Errorf("adding %d rows: %w", len(part), err)
		}
		return nil
	})
}

// insertion is a statement that adds rows.
func insertion(head string, rows [][]any) (string, []any) {
	return head + database.Rows("("+database.Marks(len(rows[0]))+")", len(rows)), slices.Concat(rows...)
}

// writeLimits writes the rows that mails of this batch were counted in.
func (b *batch) writeLimits(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(b.limits)) {
		row := b.limits[name]
		if !row.changed {
			continue
		}
		text, err := json.Marshal(row.counts)
		if err != nil {
			return err
		}
		if _, err := b.exec(ctx, "UPDATE cmsjobs_mail_limits SET counts = ?, updated_at = ? WHERE bucket = ?",
			[]any{string(text), row.now, name}); err != nil {
			return fmt.Errorf("counting against the mail limit %s: %w", name, err)
		}
	}
	return nil
}

// chunk is how many rows one statement writes.
const chunk = 100

func inChunks[T any](list []T, do func([]T) error) error {
	for len(list) > 0 {
		part := list[:min(chunk, len(list))]
		list = list[len(part):]
		if err := do(part); err != nil {
			return err
		}
	}
	return nil
}
