package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/phprows"
	"github.com/cmsjobs/cmsjobs/internal/php"
	"github.com/cmsjobs/cmsjobs/internal/redact"
)

// phpParts are the pools of PHP processes, one a queue; none where php.enabled is off.
func (r *Services) phpParts() (parts []part, err error) {
	c := r.Config.PHP
	if !c.Enabled || !r.Config.Queue.Enabled {
		return nil, nil
	}
	binary, artisan, err := r.phpPrograms()
	if err != nil {
		return nil, err
	}
	worker := r.workerInfo(r.Config.Queue.WorkerID).ID
	source, err := phprows.New(r.tables, c.Connection, worker)
	if err != nil {
		return nil, UsageError{Err: fmt.Errorf("php.enabled: %w", err)}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Queues)) {
		q := c.Queues[name].Filled()
		pool, err := php.New(php.Config{
			Source: source, Queue: name, Command: queueWork(binary, artisan, c.Connection, name, q),
			Dir:        filepath.Dir(artisan),
			Connection: c.Connection, Processes: q.Processes, Timeout: *q.Timeout, Lease: r.Config.Queue.Lease,
			Poll:  c.Poll,
			Grace: r.Config.Queue.Grace, MaxCrashes: c.MaxCrashes, StateDir: r.WakeDir, Worker: worker, Now: r.Now,
			Logger: r.Log, Redact: redact.Text, Ended: r.phpEnded,
		})
		if err != nil {
			return nil, fmt.Errorf("php.queues.%s: %w", name, err)
		}
		parts = append(parts, part{"php " + name, func(ctx context.Context) error {
			r.Log.Info("PHP's jobs are run", "event", "php.started", "queue", name, "processes", q.Processes)
			return pool.Run(ctx)
		}})
	}
	return parts, nil
}

// phpPrograms finds PHP and the site's artisan.
func (r *Services) phpPrograms() (binary, artisan string, err error) {
	if artisan = r.Config.ArtisanFile(); artisan == "" {
		return "", "", UsageError{Err: errors.New("php.enabled: the site's artisan is not known: set cms.dir or " +
			"php.artisan")}
	}
	if artisan, err = filepath.Abs(artisan); err != nil {
		return "", "", fmt.Errorf("php.artisan: %w", err)
	}
	if _, err := os.Stat(artisan); err != nil {
		return "", "", UsageError{Err: fmt.Errorf("php.artisan: %w", err)}
	}
	if binary, err = exec.LookPath(r.Config.PHP.Binary); err != nil {
		return "", "", UsageError{Err: fmt.Errorf("php.binary: %w", err)}
	}
	return binary, artisan, nil
}

// queueWork is the command of one process: Laravel's own worker, which package
// cmsjobs/laravel gives its jobs.
func queueWork(binary, artisan, connection, queue string, q config.PHPQueue) []string {
	command := []string{binary, artisan, "queue:work", connection, "--name=cmsjobs", "--queue=" + queue, "--sleep=0",
		"--quiet",
		"--tries=" + strconv.Itoa(*q.Tries), "--timeout=" + strconv.Itoa(int(q.Timeout.Seconds())), "--memory=" +
			strconv.FormatInt(int64(q.Memory>>20), 10)}
	if q.MaxJobs > 0 {
		command = append(command, "--max-jobs="+strconv.Itoa(q.MaxJobs))
	}
	if q.MaxTime > 0 {
		command = append(command, "--max-time="+strconv.Itoa(int(q.MaxTime.Seconds())))
	}
	return command
}

// phpEnded counts and logs a run of PHP's, as the worker does those of ours.
func (r *Services) phpEnded(e php.End) {
	end := e.Settlement()
	if r.Metrics != nil {
		r.Metrics.Ended(end)
	}
	r.logPHP(end)
}

// logPHP is one line of the log on a run of PHP's, where log.jobs asks for it.
func (r *Services) logPHP(end jobs.Settlement) {
	failed := end.Outcome == jobs.Failed || end.Outcome == jobs.Retried
	if which := jobs.LogEnds(r.Config.Log.Jobs); which == jobs.LogNone || which == jobs.LogFailed && !failed {
		return
	}
	log := slog.New(r.Log.Handler().WithAttrs(end.LogAttrs()))
	reason := jobs.PlainText(end.Error, 500)
	switch end.Outcome {
	case jobs.Failed:
		log.Error("job failed, see failed_jobs", "event", "job.finished", "error", reason)
	case jobs.Retried:
		log.Warn("attempt failed; the job will be retried", "event", "job.retried", "retry_in", end.Delay,
			"error", reason)
	case jobs.Released:
		log.Info("job released", "event", "job.released", "due_in", end.Delay)
	default:
		log.Info("job completed", "event", "job.finished")
	}
}
