package mail

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
)

// batch is one transaction of the ledger, for one mail or for several that
// were sent at the same time. What takes time is each question to the server:
// rows to add are gathered and go in one statement at the end, and a statement
// that comes again was prepared before.
type batch struct {
	tx              *sqlx.Tx
	prepared        map[string]*sql.Stmt
	mails, attempts [][]any
}

func newBatch(tx *sqlx.Tx) *batch { return &batch{tx: tx, prepared: map[string]*sql.Stmt{}} }

// exec runs a statement written with ? for its arguments.
func (b *batch) exec(ctx context.Context, query string, args []any) (sql.Result, error) {
	statement := b.prepared[query]
	if statement == nil {
		var err error
		if statement, err = b.tx.PrepareContext(ctx, b.tx.Rebind(query)); err != nil {
			return nil, err
		}
		b.prepared[query] = statement // closed with the transaction
	}
	return statement.ExecContext(ctx, args...)
}

const (
	mailColumns    = "job_uuid, recipient, state, token, attempt, message_id, sender, subject, template, driver, host, code, answer, created_at, updated_at"
	attemptColumns = "job_uuid, recipient, attempt, state, driver, host, code, answer, duration_ms, created_at"
)

// flush adds the gathered rows. A recipient that is there already fails it.
func (b *batch) flush(ctx context.Context) error {
	if err := b.insert(ctx, "INSERT INTO cmsjobs_mail ("+mailColumns+") VALUES ", b.mails, ""); err != nil {
		return err
	}
	return b.insert(ctx, "INSERT INTO cmsjobs_mail_attempts ("+attemptColumns+") VALUES ", b.attempts, "")
}

// insertMissing adds rows of cmsjobs_mail now; those that are there stay.
func (b *batch) insertMissing(ctx context.Context, rows [][]any) error {
	if b.tx.DriverName() == "mysql" {
		return b.insert(ctx, "INSERT IGNORE INTO cmsjobs_mail ("+mailColumns+") VALUES ", rows, "")
	}
	return b.insert(ctx, "INSERT INTO cmsjobs_mail ("+mailColumns+") VALUES ", rows, " ON CONFLICT DO NOTHING")
}

func (b *batch) insert(ctx context.Context, head string, rows [][]any, tail string) error {
	return inChunks(rows, func(part [][]any) error {
		row := "(" + strings.TrimSuffix(strings.Repeat("?, ", len(part[0])), ", ") + ")"
		var args []any
		for _, values := range part {
			args = append(args, values...)
		}
		if _, err := b.exec(ctx, head+strings.TrimSuffix(strings.Repeat(row+", ", len(part)), ", ")+tail, args); err != nil {
			return fmt.Errorf("adding %d rows: %w", len(part), err)
		}
		return nil
	})
}
