package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"golang.org/x/sync/errgroup"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// run asks for jobs, does harm and looks at the accounts, for so long.
func (l *lab) run(ctx context.Context, length, every time.Duration) error {
	say("asking for jobs for %v; the logs are in %s/logs", length, l.dir)
	l.begun = time.Now()
	ctx, stop := context.WithTimeout(ctx, length)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return l.steadily(ctx, 100*time.Millisecond, l.load.tick) })
	group.Go(func() error { return l.steadily(ctx, time.Minute, l.load.visits) })
	group.Go(func() error { return l.steadily(ctx, 15*time.Second, l.look) })
	group.Go(func() error { return l.steadily(ctx, 4*time.Second, l.shortLived) })
	if every > 0 {
		group.Go(func() error { return l.keepHarming(ctx, every) })
	}
	if err := group.Wait(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// steadily calls f at every tick until ctx ends.
func (l *lab) steadily(ctx context.Context, every time.Duration, f func(context.Context) error) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := f(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// look holds the accounts against each other (P13) and measures the spared
// process.
func (l *lab) look(ctx context.Context) error {
	a := l.load
	a.mu.Lock()
	acked := a.acked
	a.mu.Unlock()
	rows, err := l.count(ctx)
	a.mu.Lock()
	tried := len(a.asked)
	a.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil: // the server is away
	case rows < acked || rows > tried+100: // a batch may be in the table and not in our book yet
		l.unbalanced++
		l.notes = append(l.notes, fmt.Sprintf("at %s %d jobs wait, run, failed or are done; %d were acknowledged, %d "+
			"tried", time.Now().Format(clock), rows, acked, tried))
	default:
		l.balanced++
	}
	s, err := l.team[0].measure()
	if err == nil {
		l.samples = append(l.samples, s)
	}
	return nil
}

// count adds up, in one snapshot, where the jobs are that were ever asked for.
func (l *lab) count(ctx context.Context) (total int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tx, err := l.db.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	for _, query := range []string{
		"SELECT COUNT(*) FROM jobs WHERE payload LIKE '%" + uuidStart + "%'",
		"SELECT COUNT(*) FROM failed_jobs WHERE uuid LIKE '" + uuidStart + "%'",
		"SELECT COUNT(*) FROM cmsjobs_runs WHERE outcome = 'completed' AND uuid LIKE '" + uuidStart + "%'",
	} {
		var n int
		if err := tx.GetContext(ctx, &n, query); err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// note keeps a violation that no single job shows.
func (l *lab) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes = append(l.notes, fmt.Sprintf(format, args...))
	say(format, args...)
}

// finish waits until nothing of ours waits or runs any more.
func (l *lab) finish(ctx context.Context) error {
	say("no more jobs; waiting for the last")
	last := []order{}
	// so that effects finds everything
	for _, kind := range []string{"sitemap.generate", "analytics.process", "backup.generate"} {
		o, _ := l.load.order(kind, fixed(map[string]any{"force": true}))
		last = append(last, o)
	}
	if err := l.load.ask(ctx, last); err != nil {
		return err
	}
	for deadline := time.Now().Add(15 * time.Minute); time.Now().Before(deadline); {
		if err := errors.Join(l.watch(ctx), l.shortLived(ctx)); err != nil {
			return err
		}
		var left int
		err := l.db.GetContext(ctx, &left, "SELECT COUNT(*) FROM jobs WHERE payload LIKE '%"+uuidStart+"%'")
		if err == nil && left == 0 {
			return l.look(ctx)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(300 * time.Millisecond)
	}
	return nil // the judge says what is left
}

// history gathers what the judge reads.
func (l *lab) history(ctx context.Context) (history, error) {
	h := history{asked: l.load.asked, seen: append(l.hooks.all(), l.mails.all()...), waits: map[int]bool{},
		failed: map[int]bool{}, faults: l.faults,
		observed: map[string]bool{"webhook.deliver": true, "mail.send": true},
		unsure:   map[string]bool{"mail.send": true},
		onlyOnce: map[string]bool{"mail.send": true},
		queueing: map[string]bool{"sitemap.generate": true, "sitemap.indexnow": true, "backup.generate": true,
			"backup.verify": true, "analytics.process": true},
		patience: 10 * time.Second,
	}
	for query, into := range map[string]map[int]bool{
		"SELECT SUBSTRING(payload, LOCATE('" + uuidStart + "', payload), 36) FROM jobs WHERE payload LIKE '%" +
			uuidStart + "%'": h.waits,
		"SELECT uuid FROM failed_jobs WHERE uuid LIKE '" + uuidStart +
			"%'": h.failed,
	} {
		var uuids []string
		if err := l.db.SelectContext(ctx, &uuids, query); err != nil {
			return h, err
		}
		for _, uuid := range uuids {
			if key, ours := keyOf(uuid); ours {
				into[key] = true
			}
		}
	}
	var err error
	h.runs, err = runsOf(ctx, l.db)
	trueTimes(h.runs, l.jumps)
	return h, err
}

// runsOf reads the service's own history. The line of a job that another's run
// stood for has no length: it started with that run.
func runsOf(ctx context.Context, db *sqlx.DB) ([]run, error) {
	rows, err := db.QueryContext(ctx, "SELECT uuid, attempt, outcome, ended_at, "+
		"CASE WHEN result LIKE '{\"doneBy\"%' THEN (SELECT COALESCE(MAX(b.duration_ms), 0) FROM cmsjobs_runs b WHERE "+
		"b.uuid = JSON_VALUE(r.result, '$.doneBy') AND b.outcome = r.outcome) ELSE duration_ms END, "+
		"outcome = 'released' AND error LIKE ? FROM cmsjobs_runs r WHERE uuid LIKE ? ORDER BY id",
		"%"+jobs.ErrShutdown.Error()+"%", uuidStart+"%")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []run
	for rows.Next() {
		var r run
		var uuid string
		var ended, length int64
		if err := rows.Scan(&uuid, &r.attempt, &r.outcome, &ended, &length, &r.toldToStop); err != nil {
			return nil, err
		}
		r.key, _ = keyOf(uuid)
		r.ended, r.started = time.UnixMilli(ended), time.UnixMilli(ended-length)
		list = append(list, r)
	}
	return list, rows.Err()
}
