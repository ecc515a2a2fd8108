package queue

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// RecordAtOnce writes what became of a job that had no row, as it was run at once: its run,
// its lines, and a row of failed_jobs where it failed. n is the job as it was to be
// enqueued.
func (s *Store) RecordAtOnce(ctx context.Context, n jobs.Spec, end jobs.Settlement) error {
	prepared, err := s.prepare([]jobs.Spec{n}) // its fields are encrypted as those of a row
	if err != nil {
		return err
	}
	payload, err := jobs.EncodePayload(prepared[0])
	if err != nil {
		return err
	}
	end.Claimed.Payload, end.Claimed.Job.Data = payload, prepared[0].Data
	end.Claimed.Lease = jobs.Lease{Token: tables.NewToken(end.Worker), Attempt: end.Claimed.Job.Attempt}
	ends := []pendingSettlement{{Settlement: &end}}
	return s.tables.InTx(ctx, "writing the run of "+n.Type, func(t tables.Transaction) error {
		if err := s.moveToFailed(ctx, t, ends); err != nil {
			return err
		}
		if err := s.recordRuns(ctx, t.Own, ends); err != nil {
			return err
		}
		return s.storeLines(ctx, t.Own, ends)
	})
}

// recordRuns writes one row of history for each run and for each duplicate.
func (s *Store) recordRuns(ctx context.Context, q tables.Tx, ends []pendingSettlement) error {
	lines := make([]tables.RunRow, 0, len(ends))
	for _, e := range ends {
		if e.Unstarted {
			continue
		}
		lead := s.runOf(e)
		lines = append(lines, s.tables.RowOf(&lead))
		if !e.gone() {
			continue
		}
		for _, duplicate := range e.Claimed.Duplicates {
			job := e.Claimed.Job
			job.ID, job.UUID, job.Attempt = duplicate.ID, tables.DuplicateUUID(duplicate), duplicate.Attempt
			result := json.RawMessage(fmt.Sprintf(`{"doneBy":%q}`, e.Claimed.Job.UUID))
			lines = append(lines,
				s.tables.RowOf(&tables.Run{Job: job, Outcome: lead.Outcome, Worker: e.Worker,
					Lease: tables.RandomPart(tables.TokenOf(duplicate)), Wait: e.Wait,
					Error: tables.FirstLine(e.Error), Result: result, Withheld: true}))
		}
	}
	return s.tables.InsertRunRows(ctx, q, lines)
}

// runOf is the row of a run, without its duplicates.
func (s *Store) runOf(e pendingSettlement) tables.Run {
	r := tables.Run{Job: e.Claimed.Job, Outcome: e.Outcome.String(), Worker: e.Worker,
		Lease:    tables.RandomPart(tables.TokenOf(e.Claimed.Lease)),
		Duration: e.Duration, Wait: e.Wait, Error: e.Error, Result: e.Result}
	if e.gone() {
		r.Data = e.Claimed.Job.Data
		r.Withheld = e.Outcome != jobs.Failed && s.tables.Confidential(e.Claimed.Job.Type)
	}
	return r
}

// recordCrashes writes a row for each earlier run whose end was never written,
// naming the worker where it is known.
func (s *Store) recordCrashes(ctx context.Context, t tables.Transaction, rows []*tables.Candidate) error {
	var crashed []tables.Run
	for _, x := range rows {
		if !x.Rescued || x.Attempts == 0 {
			continue
		}
		worker, err := s.lastHolder(ctx, t.Own, x)
		if err != nil {
			return err
		}
		job := x.Job
		job.Attempt = x.Attempts
		message := tables.EndedWithoutResult
		if worker != "" {
			message += " (" + worker + ")"
		}
		crashed = append(crashed, tables.Run{Job: job, Outcome: jobs.CrashedOutcome, Worker: worker, Lease: "",
			Error: message})
	}
	return s.tables.InsertRuns(ctx, t.Own, crashed)
}

// lastHolder is the worker that held a rescued job, "" where it is unknown.
func (s *Store) lastHolder(ctx context.Context, q tables.Tx, x *tables.Candidate) (string, error) {
	if x.Token.Valid {
		return tables.HolderOf(x.Token.String), nil
	}
	worker := ""
	err := s.tables.Query(ctx, q, func(r *sql.Rows) error {
		var id, running string
		if err := r.Scan(&id, &running); err != nil {
			return err
		}
		var held []jobs.RunningJob
		if json.Unmarshal([]byte(running), &held) == nil && slices.ContainsFunc(held, func(j jobs.RunningJob) bool {
			return j.ID == x.ID && j.Attempt == x.Attempts
		}) {
			worker = id
		}
		return nil
	}, "SELECT id, running FROM cmsjobs_workers WHERE running LIKE ?", fmt.Sprintf(`%%"id":%d,%%`, x.ID))
	if err != nil {
		return "", fmt.Errorf("asking who held job %d: %w", x.ID, err)
	}
	return worker, nil
}

// storeLines keeps log lines that no heartbeat has stored.
func (s *Store) storeLines(ctx context.Context, q tables.Tx, ends []pendingSettlement) error {
	var lines []tables.JobLine
	for _, e := range ends {
		for _, l := range e.Lines {
			lines = append(lines, tables.JobLine{UUID: e.Claimed.Job.UUID,
				Attempt: e.Claimed.Job.Attempt, LogLine: l})
		}
	}
	return s.tables.InsertLines(ctx, q, lines)
}
