package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// recordRuns writes one row of history for each run and for each twin.
func (s *Store) recordRuns(ctx context.Context, q Tx, ends []pendingSettlement) error {
	lines := make([]RunRow, 0, len(ends))
	for _, e := range ends {
		lead := s.runOf(e)
		lines = append(lines, s.RowOf(&lead))
		if !e.gone() {
			continue
		}
		for _, duplicate := range e.Claimed.Duplicates {
			job := e.Claimed.Job
			job.ID, job.UUID, job.Attempt = duplicate.ID, duplicateUUID(duplicate), duplicate.Attempt
			result := json.RawMessage(fmt.Sprintf(`{"doneBy":%q}`, e.Claimed.Job.UUID))
			lines = append(lines, s.RowOf(&Run{job: job, outcome: lead.outcome, worker: e.Worker, lease: randomPart(tokenOf(duplicate)), wait: e.Wait, Error: firstLine(e.Error), result: result}))
		}
	}
	return s.InsertRunRows(ctx, q, lines)
}

// runOf is the line of a run, without its twins.
func (s *Store) runOf(e pendingSettlement) Run {
	r := Run{job: e.Claimed.Job, outcome: e.Outcome.String(), worker: e.Worker, lease: randomPart(tokenOf(e.Claimed.Lease)),
		duration: e.Duration, wait: e.Wait, Error: e.Error, result: e.Result}
	if e.gone() && (e.Outcome == jobs.Failed || !s.confidential(e.Claimed.Job.Type)) {
		r.data = e.Claimed.Job.Data
	}
	return r
}

// recordCrashes writes a line for each earlier run that ended without a word,
// naming the worker where it is known.
func (s *Store) recordCrashes(ctx context.Context, t Transaction, rows []*Candidate) error {
	var crashed []Run
	for _, x := range rows {
		if !x.rescued || x.attempts == 0 {
			continue
		}
		worker, err := s.lastHolder(ctx, t.own, x)
		if err != nil {
			return err
		}
		job := x.job
		job.Attempt = x.attempts
		message := "the run ended without a word: its worker died, was cut off or was paused beyond its lease"
		if worker != "" {
			message += " (" + worker + ")"
		}
		crashed = append(crashed, Run{job: job, outcome: jobs.CrashedOutcome, worker: worker, lease: "", Error: message})
	}
	return s.insertRuns(ctx, t.own, crashed)
}

// lastHolder is the worker that held a rescued job, "" where nobody noted it.
func (s *Store) lastHolder(ctx context.Context, q Tx, x *Candidate) (string, error) {
	if x.token.Valid {
		return HolderOf(x.token.String), nil
	}
	worker := ""
	err := s.query(ctx, q, func(r *sql.Rows) error {
		var id, running string
		if err := r.Scan(&id, &running); err != nil {
			return err
		}
		var held []jobs.RunningJob
		if json.Unmarshal([]byte(running), &held) == nil && slices.ContainsFunc(held, func(j jobs.RunningJob) bool { return j.ID == x.id && j.Attempt == x.attempts }) {
			worker = id
		}
		return nil
	}, "SELECT id, running FROM cmsjobs_workers WHERE running LIKE ?", fmt.Sprintf(`%%"id":%d,%%`, x.id))
	if err != nil {
		return "", fmt.Errorf("asking who held job %d: %w", x.id, err)
	}
	return worker, nil
}

// storeLines keeps log lines that no heartbeat has stored.
func (s *Store) storeLines(ctx context.Context, q Tx, ends []pendingSettlement) error {
	var lines []jobLine
	for _, e := range ends {
		for _, l := range e.Lines {
			lines = append(lines, jobLine{e.Claimed.Job.UUID, e.Claimed.Job.Attempt, l})
		}
	}
	return s.insertLines(ctx, q, lines)
}

type jobLine struct {
	uuid    string
	attempt int
	jobs.LogLine
}

func (s *Store) insertLines(ctx context.Context, q Tx, lines []jobLine) error {
	for chunk := range slices.Chunk(lines, 200) {
		var args []any
		for _, l := range chunk {
			args = append(args, l.uuid, l.attempt, l.At.UnixMilli(), CutText(l.Text))
		}
		if _, err := s.exec(ctx, q, "INSERT INTO cmsjobs_job_logs (uuid, attempt, at, line) VALUES "+strings.TrimSuffix(strings.Repeat("(?,?,?,?),", len(chunk)), ","), args...); err != nil {
			return fmt.Errorf("writing jobs' log lines: %w", err)
		}
	}
	return nil
}
