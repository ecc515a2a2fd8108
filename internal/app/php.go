package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/handlers/external"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/phprows"
	"github.com/cmsjobs/cmsjobs/internal/jobs/schedule"
	"github.com/cmsjobs/cmsjobs/internal/jobs/wake"
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
	info := r.workerInfo(r.Config.Queue.WorkerID)
	source, err := r.PHPRows(info.ID)
	if err != nil {
		return nil, UsageError{Err: fmt.Errorf("php.enabled: %w", err)}
	}
	dir := filepath.Dir(artisan)
	balancer := &php.Balancer{Most: c.Processes, Memory: int64(c.Memory), Logger: r.Log}
	for _, name := range slices.Sorted(maps.Keys(c.Queues)) {
		q := c.Queues[name].Filled()
		wakeUps := make(chan struct{}, 1)
		pool, err := php.New(php.Config{
			Source: source, Queue: name, Command: queueWork(binary, artisan, name, c, q), Dir: dir,
			Connection: c.Connection, Processes: q.Processes.Least, MaxProcesses: q.Processes.Most,
			Timeout: *q.Timeout, Lease: r.Config.Queue.Lease, Poll: c.Poll,
			Grace: r.Config.Queue.Grace, MaxCrashes: c.MaxCrashes, StateDir: r.WakeDir, Worker: info.ID, Now: r.Now,
			Logger: r.Log, Redact: redact.Text, Ended: r.phpEnded, Wake: wakeUps,
			Release: func() string { return php.Release(dir) },
		})
		if err != nil {
			return nil, fmt.Errorf("php.queues.%s: %w", name, err)
		}
		balancer.Pools = append(balancer.Pools, pool)
		parts = append(parts, part{"php " + name, func(ctx context.Context) error {
			r.Log.Info("PHP's jobs are run", "event", "php.started", "queue", name, "processes", q.Processes.String())
			defer r.passWakeUps(name, wakeUps)()
			return pool.Run(ctx)
		}})
	}
	parts = append(parts, part{"balance of PHP's processes", func(ctx context.Context) error {
		balancer.Run(ctx)
		return nil
	}})
	r.pools, r.poolsInfo = balancer.Pools, info
	if !r.Config.Queue.Worker { // which does these otherwise
		parts = append(parts, part{"feed", r.watchFeedAlone}, part{"heartbeat", r.beatAlone})
	}
	return parts, nil
}

// beatAlone says what the PHP processes do, where no worker says it.
func (r *Services) beatAlone(ctx context.Context) error {
	beats := &php.Heartbeat{Registry: r.Store, Info: r.poolsInfo, Pools: r.pools, Now: r.Now, Logger: r.Log}
	return beats.Run(ctx)
}

// passWakeUps tells a pool of the calls about its queue, until stop is called.
func (r *Services) passWakeUps(queue string, to chan<- struct{}) (stop func()) {
	ears, err := wake.Listen(r.WakeDir, func(string, string) {
		select {
		case to <- struct{}{}:
		default:
		}
	}, queue)
	if err != nil {
		r.Log.Info("no wake-ups on this host; PHP's jobs start at the next poll", "event", "wakeup.unavailable",
			"error", err)
		return func() {}
	}
	return func() {
		if err := ears.Close(); err != nil {
			r.Log.Debug("closing the wake-up socket", "event", "wakeup.close_failed", "error", err)
		}
	}
}

// watchFeedAlone watches for new rows until ctx ends.
func (r *Services) watchFeedAlone(ctx context.Context) error {
	stop, err := r.watchFeed(ctx, r.wakeWorkers)
	if err != nil {
		return err
	}
	<-ctx.Done()
	stop()
	return nil
}

// PHPRows are PHP's jobs in the CMS's table, claimed by the worker that is named.
func (r *Services) PHPRows(worker string) (php.Source, error) {
	return phprows.New(r.tables, r.Config.PHP.Connection, worker)
}

// phpPrograms finds PHP and the site's artisan.
func (r *Services) phpPrograms() (binary, artisan string, err error) {
	if artisan = r.Config.ArtisanFile(); artisan == "" {
		return "", "", UsageError{Err: errors.New("php: the site's artisan is not known: set cms.dir or " +
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
	if binary, err = filepath.Abs(binary); err != nil {
		return "", "", fmt.Errorf("php.binary: %w", err)
	}
	return binary, artisan, nil
}

// queueWork is the command of one process: Laravel's own worker, which package
// cmsjobs/laravel gives its jobs.
func queueWork(binary, artisan, queue string, c config.PHP, q config.PHPQueue) []string {
	command := []string{binary, artisan, "queue:work", c.Connection, "--name=cmsjobs", "--queue=" + queue, "--sleep=0",
		"--quiet",
		"--tries=" + strconv.Itoa(*q.Tries), "--timeout=" + strconv.Itoa(int(q.Timeout.Seconds())), "--memory=" +
			strconv.FormatInt(int64(q.Memory>>20), 10)}
	if q.MaxJobs > 0 {
		command = append(command, "--max-jobs="+strconv.Itoa(q.MaxJobs))
	}
	if q.MaxTime > 0 {
		command = append(command, "--max-time="+strconv.Itoa(int(q.MaxTime.Seconds())))
	}
	if c.Force {
		command = append(command, "--force")
	}
	if q.Nice > 0 {
		command = append([]string{"nice", "-n", strconv.Itoa(q.Nice)}, command...) // it becomes the command
	}
	return command
}

// phpEnded counts and logs a run of PHP's, as the worker does those of ours.
func (r *Services) phpEnded(e php.End) {
	end := e.Settlement()
	if r.Metrics != nil {
		r.Metrics.EndedPHP(end)
	}
	if jobs.LogEnds(r.Config.Log.Jobs).Wants(end.Outcome) {
		jobs.LogEnd(r.Log, end, jobs.PlainText(end.Error, 500))
	}
}

// phpSchedule is the entry of the timetable, and the program, that take the place of the
// crontab's "php artisan schedule:run".
const phpSchedule = "php.schedule"

// phpScheduleEntry runs it each minute. A minute that nobody took is not made up for:
// Laravel runs what is due in the minute in which it is asked. Nor is a run that failed:
// the next comes within a minute.
func phpScheduleEntry() schedule.Entry {
	job := external.Run.New(external.Payload{Name: phpSchedule}).WithPriority(phpSchedulePriority)
	job.MaxAttempts = 1
	return schedule.Entry{Name: phpSchedule, Cron: "* * * * *", Job: job, Policy: schedule.Skip}
}

// phpSchedulePriority puts it before other jobs, as its minute passes.
const phpSchedulePriority = 100

// addPHPSchedule adds the program, where php.schedule asks for it.
func (r *Services) addPHPSchedule(commands map[string]external.Command) error {
	if !r.Config.PHP.Schedule {
		return nil
	}
	if _, taken := commands[phpSchedule]; taken {
		return UsageError{Err: fmt.Errorf("external.commands.%s: php.schedule has a program of this name", phpSchedule)}
	}
	binary, artisan, err := r.phpPrograms()
	if err != nil {
		r.Log.Warn("php artisan schedule:run is not run from here", "event", "php.schedule_off", "error", err)
		return nil
	}
	env := map[string]string{}
	for _, variable := range config.Environment() { // as crontab's line had it, without our settings
		if name, value, ok := strings.Cut(variable, "="); ok && !strings.HasPrefix(name, "CMSJOBS_") {
			env[name] = value
		}
	}
	commands[phpSchedule] = external.Command{Program: binary, Args: []string{artisan, "schedule:run", "--no-ansi"},
		Dir: filepath.Dir(artisan), Env: env, Timeout: external.MaxTimeout}
	return nil
}
