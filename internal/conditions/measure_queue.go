package conditions

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// queues judges workers and what waits for them.
func (l *look) queues(ctx context.Context) {
	var err error
	if l.workers, err = l.c.Queue.Workers(ctx); err == nil {
		l.backlogs, err = l.c.Queue.Backlogs(ctx, l.known())
	}
	if err != nil {
		for _, name := range []string{NoWorker, QueueUnattended, JobOverdue, StalledJobs, UnknownJobs} {
			l.set(name, unmeasured(err))
		}
		return
	}
	live, listening := 0, map[string]bool{}
	for _, w := range l.workers {
		if !w.Alive {
			continue
		}
		live++
		for _, q := range w.Queues {
			listening[q] = true
		}
	}
	for _, name := range []string{NoWorker, QueueUnattended, JobOverdue, StalledJobs, UnknownJobs} {
		l.set(name, reading{})
	}
	for _, b := range l.backlogs {
		switch {
		case b.Due == 0 || b.Paused:
		case live == 0:
			l.worst(NoWorker, b.OldestDue, "no worker is alive, and jobs have waited in the queue %s for %s", b.Queue, span(b.OldestDue))
		case !listening[b.Queue]:
			l.worst(QueueUnattended, b.OldestDue, "no worker listens to the queue %s; its oldest due job has waited for %s", b.Queue, span(b.OldestDue))
		default:
			l.worst(JobOverdue, b.OldestDue, "the oldest due job of the queue %s has waited for %s", b.Queue, span(b.OldestDue))
		}
		if b.Stalled > 0 {
			l.worst(StalledJobs, b.OldestStalled, "%d stalled {job|jobs} in the queue %s; the first lease ended %s ago", b.Stalled, b.Queue, span(b.OldestStalled))
		}
		if len(b.Unknown) > 0 {
			l.worst(UnknownJobs, b.OldestUnknown, "no worker knows the type of jobs in the queue %s: %s", b.Queue, counted(b.Unknown))
		}
	}
	if l.wanted(PHPWorker) {
		l.php(ctx)
	}
}

// worst lets a condition hold once its age is beyond the limit.
func (l *look) worst(name string, age time.Duration, format string, args ...any) {
	if age >= l.limit(name).Duration() && !l.readings[name].holds {
		l.set(name, holds(format, args...))
	}
}

// known says whether this program or a live worker can run a type.
func (l *look) known() func(string) bool {
	elsewhere := map[string]bool{}
	for _, w := range l.workers {
		for _, jobType := range w.Types {
			elsewhere[jobType] = elsewhere[jobType] || w.Alive
		}
	}
	return func(jobType string) bool { return l.c.Known(jobType) || elsewhere[jobType] }
}

func counted(list map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		parts = append(parts, fmt.Sprintf("%s (%d)", name, list[name]))
	}
	return strings.Join(parts, ", ")
}

func (l *look) php(ctx context.Context) {
	queues, err := l.c.Server.FailedByPHP(ctx, l.limit(PHPWorker).Duration(), l.c.Known)
	switch {
	case err != nil:
		l.set(PHPWorker, unmeasured(err))
	case len(queues) == 0:
		l.set(PHPWorker, reading{})
	default:
		l.set(PHPWorker, holds("a PHP worker took jobs of ours and failed them, by queue: %s", counted(queues)))
	}
}

// schedule judges schedulers and their entries.
func (l *look) schedule(ctx context.Context) {
	scheduler, wanted := l.scheduler(ctx)
	if !wanted {
		return
	}
	l.set(NoScheduler, scheduler)
	if l.c.Overdue == nil {
		return
	}
	late := l.limit(ScheduleOverdue).Duration()
	overdue, err := l.c.Overdue(ctx, late)
	switch {
	case err != nil:
		l.set(ScheduleOverdue, unmeasured(err))
	case len(overdue) == 0:
		l.set(ScheduleOverdue, reading{})
	default:
		var names []string
		for _, e := range overdue {
			names = append(names, fmt.Sprintf("%s (due %s)", e.Entry, e.Tick.UTC().Format(time.RFC3339)))
		}
		l.set(ScheduleOverdue, holds("these entries have no tick: %s", strings.Join(names, ", ")))
	}
}

// schedulerMissed is for how long a scheduler is missed by processes that need
// none themselves: another may have run one that is switched off for good.
const schedulerMissed = 48 * time.Hour

// scheduler says whether one went through the timetable lately. Where none
// ever did, processes that ran for so long without one count.
func (l *look) scheduler(ctx context.Context) (_ reading, wanted bool) {
	var last, first int64
	err := l.c.DB.QueryRowxContext(ctx, "SELECT COALESCE(MAX(scheduled_at), 0), COALESCE(MIN(started_at), 0) FROM cmsjobs_processes").Scan(&last, &first)
	if err != nil {
		return unmeasured(fmt.Errorf("reading the processes of the service: %w", err)), l.c.Scheduling
	}
	limit := l.limit(NoScheduler).Duration()
	wanted = l.c.Scheduling || l.now.Sub(time.UnixMilli(last)) < schedulerMissed
	switch {
	case last > 0 && l.now.Sub(time.UnixMilli(last)) > limit:
		return holds("no scheduler went through the timetable for %s", span(l.now.Sub(time.UnixMilli(last)))), wanted
	case last == 0 && first > 0 && l.now.Sub(time.UnixMilli(first)) > limit:
		return holds("processes run, and none of them schedules"), wanted
	}
	return reading{}, wanted
}

// history judges outcomes and sizes.
func (l *look) history(ctx context.Context) {
	if l.wanted(FailureRate) {
		failed, completed, err := l.c.Queue.Outcomes(ctx, time.Hour, l.c.Notification)
		switch all := failed + completed; {
		case err != nil:
			l.set(FailureRate, unmeasured(err))
		case failed >= 10 && failed*100 > all*l.limit(FailureRate).Value:
			l.set(FailureRate, holds("%d of %d {run|runs} failed within an hour", failed, all))
		default:
			l.set(FailureRate, reading{})
		}
	}
	if !l.wanted(QueueGrowing) && !l.wanted(HistoryGrowing) {
		return
	}
	waiting, history := l.limit(QueueGrowing).Value, l.limit(HistoryGrowing).Value
	v, err := l.c.Queue.Volume(ctx, waiting)
	if err != nil {
		l.set(QueueGrowing, unmeasured(err))
		l.set(HistoryGrowing, unmeasured(err))
		return
	}
	l.set(QueueGrowing, reading{})
	if v.Waiting > waiting {
		l.set(QueueGrowing, holds("the jobs table holds more than %s rows", count(waiting)))
	}
	l.set(HistoryGrowing, reading{})
	if largest := max(v.Runs, v.Failed); largest > history {
		l.set(HistoryGrowing, holds("cmsjobs_runs spans %s rows, failed_jobs %s", count(v.Runs), count(v.Failed)))
	}
}

// backups judges what our own tables know of backups.
func (l *look) backups(ctx context.Context) {
	if l.c.Backups == nil || !l.slow {
		return
	}
	b, err := l.c.Backups(ctx)
	if err != nil {
		for _, name := range []string{NoBackup, VerificationOld, RestoreUnfinished, TempDatabasesLeft} {
			if l.wanted(name) {
				l.set(name, unmeasured(err))
			}
		}
		return
	}
	old := func(name string, last time.Time, none, text string) {
		limit := l.limit(name).Duration()
		switch {
		case limit <= 0:
			l.set(name, reading{})
		case last.IsZero() && l.now.Sub(l.installed) > limit && !l.installed.IsZero():
			l.set(name, holds("%s", none))
		case !last.IsZero() && l.now.Sub(last) > limit:
			l.set(name, holds(text, span(l.now.Sub(last))))
		default:
			l.set(name, reading{})
		}
	}
	old(NoBackup, b.LastComplete, "no complete backup was ever made", "the last complete backup is %s old")
	if b.Verifications {
		old(VerificationOld, b.LastVerification, "no backup was ever verified", "the last backup was verified %s ago")
	}
	l.set(RestoreUnfinished, reading{})
	if b.Unfinished != "" {
		l.set(RestoreUnfinished, holds("%s ended without finishing; tables may be half old and half new", b.Unfinished))
	}
	l.set(TempDatabasesLeft, reading{})
	if len(b.TempDatabases) > 0 {
		l.set(TempDatabasesLeft, holds("left over: %s", strings.Join(b.TempDatabases, ", ")))
	}
}
