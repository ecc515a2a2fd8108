package conditions

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// queueConditions are those that are judged by what waits and who is there for it.
var queueConditions = []string{NoWorker, QueueUnattended, JobOverdue, StalledJobs, UnknownJobs}

// queues judges what waits, and whether workers are there for it.
func (l *look) queues(ctx context.Context) {
	backlogs, err := l.c.Queue.Backlogs(ctx, l.known(ctx))
	if err == nil && len(backlogs) > 0 {
		_, err = l.fleet(ctx)
	}
	for _, name := range queueConditions {
		l.set(name, reading{err: err})
	}
	if err != nil {
		return
	}
	live, listening := 0, map[string]bool{}
	for _, w := range l.workers {
		if !w.Alive || !w.RunsTypes() {
			continue
		}
		live++
		for _, q := range w.Queues {
			listening[q] = true
		}
	}
	for _, b := range backlogs {
		l.waiting(b, live > 0, listening[b.Queue])
		if b.Stalled > 0 {
			l.worst(StalledJobs, b.OldestStalled,
				"%d stalled {job|jobs} in the queue %s; the first lease ended %s ago", b.Stalled, b.Queue,
				span(b.OldestStalled))
		}
		if len(b.Unknown) > 0 {
			l.worst(UnknownJobs, b.OldestUnknown, "no worker knows the type of jobs in the queue %s: %s", b.Queue,
				counted(b.Unknown))
		}
	}
}

// waiting judges the due jobs of a queue by whether there is a worker at all, and
// one that listens to it.
func (l *look) waiting(b jobs.QueueBacklog, worker, listener bool) {
	switch {
	case b.Due == 0 || b.Paused:
	case !worker:
		l.worst(NoWorker, b.OldestDue, "no worker is alive, and jobs have waited in the queue %s for %s", b.Queue,
			span(b.OldestDue))
	case !listener:
		l.worst(QueueUnattended, b.OldestDue,
			"no worker listens to the queue %s; its oldest due job has waited for %s", b.Queue, span(b.OldestDue))
	default:
		l.worst(JobOverdue, b.OldestDue, "the oldest due job of the queue %s has waited for %s", b.Queue,
			span(b.OldestDue))
	}
}

// worst lets a condition hold once its age is beyond the limit.
func (l *look) worst(name string, age time.Duration, format string, args ...any) {
	if age >= l.limit(name).Duration() && !l.readings[name].holds {
		l.set(name, holds(format, args...))
	}
}

// known says whether this program or a live worker can run a type. Workers that
// cannot be read fail what called it (queues).
func (l *look) known(ctx context.Context) func(string) bool {
	return func(jobType string) bool {
		if l.c.Known(jobType) {
			return true
		}
		workers, _ := l.fleet(ctx)
		return slices.ContainsFunc(workers, func(w jobs.WorkerRecord) bool {
			return w.Alive && slices.Contains(w.Types, jobType)
		})
	}
}

func counted(list map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		parts = append(parts, fmt.Sprintf("%s (%d)", name, list[name]))
	}
	return strings.Join(parts, ", ")
}

func (l *look) php(ctx context.Context) {
	queues, err := l.c.Server.FailedByPHP(ctx, l.now.Add(-l.limit(PHPWorker).Duration()), l.c.Known)
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
	scheduler, wanted := l.scheduler()
	if !wanted {
		return
	}
	l.set(NoScheduler, scheduler)
	if l.c.Overdue == nil {
		return
	}
	overdue, err := l.overdue(ctx)
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

// overdue lists the overdue entries. In a slow round it looks ahead to the next
// one: if no entry is so late already, none can be overdue before.
func (l *look) overdue(ctx context.Context) ([]OverdueEntry, error) {
	if !l.slow && l.now.Before(l.onTimeUntil) {
		return nil, nil
	}
	late, ahead := l.limit(ScheduleOverdue).Duration(), slowRounds*l.c.Every
	if l.c.Process == nil || ahead > late {
		return l.c.Overdue(ctx, late)
	}
	list, err := l.c.Overdue(ctx, late-ahead)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		l.onTimeUntil = l.now.Add(ahead)
		return nil, nil
	}
	l.onTimeUntil = time.Time{}
	return l.c.Overdue(ctx, late)
}

// schedulerMissed is for how long a scheduler is missed by processes that need
// none themselves: another may have run one that is switched off for good.
const schedulerMissed = 48 * time.Hour

// scheduler says whether one went through the timetable lately. Where none
// ever did, processes that ran for so long without one count.
func (l *look) scheduler() (_ reading, wanted bool) {
	if l.processesErr != nil {
		return unmeasured(l.processesErr), l.c.Scheduling
	}
	limit := l.limit(NoScheduler).Duration()
	silent := l.now.Sub(l.scheduled)
	wanted = l.c.Scheduling || silent < schedulerMissed
	switch {
	case !l.scheduled.IsZero() && silent > limit:
		return holds("no scheduler went through the timetable for %s", span(silent)), wanted
	case l.scheduled.IsZero() && !l.started.IsZero() && l.now.Sub(l.started) > limit:
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
		for _, name := range []string{NoBackup, VerificationOld, RestoreUnfinished, TempDatabasesLeft,
			LogNotArchived} {
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
	l.texts(b)
}

// texts sets the conditions that hold where there is a text about them.
func (l *look) texts(b Backups) {
	left := ""
	if len(b.TempDatabases) > 0 {
		left = "left over: " + strings.Join(b.TempDatabases, ", ")
	}
	for name, text := range map[string]string{RestoreUnfinished: b.Unfinished, LogNotArchived: b.Log,
		TempDatabasesLeft: left} {
		l.set(name, reading{})
		if text != "" {
			l.set(name, holds("%s", text))
		}
	}
}
