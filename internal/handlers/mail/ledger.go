package mail

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// maxAnswer is how much of an answer is kept, in characters.
const maxAnswer = 500

// ledger is cmsjobs_mail and the log of attempts beside it.
type ledger struct {
	db    *sqlx.DB
	now   func() time.Time
	write *groupCommit
}

func newLedger(db *sqlx.DB, now func() time.Time) ledger {
	return ledger{db: db, now: now, write: newGroupCommit(db)}
}

// note is what all rows that one run writes have in common.
type note struct {
	uuid, token, messageID string
	sender, subject        string
	template, driver, host string
	attempt                int
	started                time.Time
}

// errTaken says that a recipient is being handled by another run of the job.
var errTaken = errors.New("another run of this job is sending to the same recipients")

// errLedger marks trouble of the ledger, which says nothing about the server.
var errLedger = errors.New("the mail was not handed over")

func newToken() string { return rand.Text() }

// load returns the states of a job's recipients by their keys.
func (l ledger) load(ctx context.Context, uuid string) (map[string]Status, error) {
	var rows []struct {
		Recipient string
		Status    Status
	}
	if err := l.db.SelectContext(ctx, &rows,
		l.db.Rebind("SELECT recipient, status FROM cmsjobs_mail WHERE job_uuid = ?"), uuid); err != nil {
		return nil, fmt.Errorf("reading the mail ledger: %w", err)
	}
	states := make(map[string]Status, len(rows))
	for _, r := range rows {
		states[r.Recipient] = r.Status
	}
	return states, nil
}

// claim writes "sending" for each recipient: all, or none. known are the
// states that load returned; a row that changed since then fails the claim.
func (l ledger) claim(ctx context.Context, n note, to []address.Address, known map[string]Status) error {
	var fresh []address.Address
	byState := map[Status][]string{}
	for _, a := range to {
		if state, there := known[a.Key()]; there {
			byState[state] = append(byState[state], a.Key())
		} else {
			fresh = append(fresh, a)
		}
	}
	err := l.write.do(ctx, "claiming recipients in the mail ledger", func(ctx context.Context, b *batch) error {
		for state, keys := range byState {
			got, err := l.update(ctx, b, n, keys, "status = ?", state, outcome{status: Sending})
			if err != nil {
				return err
			}
			if got != len(keys) {
				return errTaken
			}
		}
		b.mails = append(b.mails, l.rows(n, sameStatus(fresh, Sending))...)
		return nil
	})
	if err != nil && l.holds(ctx, n, len(to)) {
		return nil // the answer to the commit was lost, not the commit
	}
	return err
}

// holds says whether this run has claimed that many recipients of its job.
func (l ledger) holds(ctx context.Context, n note, recipients int) bool {
	var held int
	err := l.db.GetContext(ctx, &held, l.db.Rebind("SELECT COUNT(*) FROM cmsjobs_mail WHERE job_uuid = ? AND token = "+
		"? AND status = ?"), n.uuid, n.token, Sending)
	return err == nil && held == recipients
}

// settle writes the answers. Rows that this run claimed are found by its
// token; what was never claimed is written where no other run holds it.
func (l ledger) settle(ctx context.Context, n note, outcomes []outcome) error {
	return l.write.do(ctx, "writing the mail ledger", func(_ context.Context, b *batch) error {
		b.answers = append(b.answers, l.rows(n, outcomes)...)
		b.attempts = append(b.attempts, l.attempts(n, outcomes)...)
		return nil
	})
}

// markUnknown ends rows whose run died. It leaves their token, so that a run
// that is alive after all can still write the answer.
func (l ledger) markUnknown(ctx context.Context, uuid string, to []address.Address, why string) error {
	keys := make([]string, len(to))
	for i, a := range to {
		keys[i] = a.Key()
	}
	return inChunks(keys, func(part []string) error {
		query, args, err := sqlx.In("UPDATE cmsjobs_mail SET status = ?, answer = ?, updated_at = ? WHERE job_uuid = "+
			"? AND recipient IN (?) AND status = ?",
			Unknown, why, l.now().UnixMilli(), uuid, part, Sending)
		if err != nil {
			return err
		}
		if _, err := l.db.ExecContext(ctx, l.db.Rebind(query), args...); err != nil {
			return fmt.Errorf("marking recipients as unknown: %w", err)
		}
		return nil
	})
}

func sameStatus(to []address.Address, state Status) []outcome { return all(to, state, 0, "") }

// update writes o into the rows of keys for which condition holds, and counts them.
func (l ledger) update(ctx context.Context, b *batch, n note, keys []string, condition string, arg any, o outcome) (
	int, error) {
	total := 0
	for len(keys) > 0 {
		part := keys[:min(chunk, len(keys))]
		keys = keys[len(part):]
		query, args, err := sqlx.In(`UPDATE cmsjobs_mail SET status = ?, token = ?, attempt = ?, message_id = ?, driver
			= ?, host = ?, code = ?, answer = ?, updated_at = ?
			WHERE job_uuid = ? AND recipient IN (?) AND `+condition,
			o.status, n.token, n.attempt, n.messageID, n.driver, n.host, o.code, cut(o.answer, maxAnswer),
			l.now().UnixMilli(), n.uuid, part, arg)
		if err != nil {
			return 0, err
		}
		result, err := b.exec(ctx, query, args)
		if err != nil {
			return 0, err
		}
		rows, err := result.RowsAffected()
		if err != nil {
			return 0, err
		}
		total += int(rows)
	}
	return total, nil
}

// rows are those of cmsjobs_mail (mailColumns).
func (l ledger) rows(n note, outcomes []outcome) [][]any {
	now := l.now().UnixMilli()
	rows := make([][]any, len(outcomes))
	for i, o := range outcomes {
		rows[i] = []any{n.uuid, o.to.Key(), o.status, n.token, n.attempt, n.messageID, cut(n.sender, 254),
			cut(n.subject, 255), cut(n.template, 191),
			n.driver, cut(n.host, 255), o.code, cut(o.answer, maxAnswer), now, now}
	}
	return rows
}

// attempts are rows of cmsjobs_mail_attempts (attemptColumns).
func (l ledger) attempts(n note, outcomes []outcome) [][]any {
	now := l.now()
	rows := make([][]any, len(outcomes))
	for i, o := range outcomes {
		rows[i] = []any{n.uuid, o.to.Key(), n.attempt, o.status, n.driver, cut(n.host, 255), o.code,
			cut(o.answer, maxAnswer), now.Sub(n.started).Milliseconds(), now.UnixMilli()}
	}
	return rows
}

// cut makes foreign text fit for a column and a page: one line.
func cut(text string, limit int) string { return jobs.PlainText(text, limit) }
