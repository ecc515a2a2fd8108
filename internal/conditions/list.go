package conditions

import (
	"fmt"
	"strings"
	"time"
)

// Severity says how bad a condition is.
type Severity string

// The severities. A failing condition makes doctor and health exit with 1 and
// /readyz answer 503; a warning does so with --strict and ?check=NAME.
const (
	Warning Severity = "warning"
	Failing Severity = "failing"
)

// The names of the conditions.
const (
	DatabaseDown      = "database_down"
	DatabaseReadOnly  = "database_read_only"
	WritesFailing     = "writes_failing"
	DiskFull          = "disk_full"
	NoWorker          = "no_worker"
	QueueUnattended   = "queue_unattended"
	JobOverdue        = "job_overdue"
	StalledJobs       = "stalled_jobs"
	UnknownJobs       = "unknown_jobs"
	PHPWorker         = "php_worker"
	NoScheduler       = "no_scheduler"
	ScheduleOverdue   = "schedule_overdue"
	CircuitOpen       = "circuit_open"
	FailureRate       = "failure_rate"
	QueueGrowing      = "queue_growing"
	HistoryGrowing    = "history_growing"
	NoBackup          = "no_backup"
	VerificationOld   = "verification_old"
	RestoreUnfinished = "restore_unfinished"
	TempDatabasesLeft = "temp_databases_left"
	LogNotArchived    = "log_not_archived"
	ClockJump         = "clock_jump"
)

// Definition is one line of the list. Texts are Markdown without a full stop.
type Definition struct {
	Name     string
	Severity Severity
	Title    string // a sentence part for people: "No worker runs"
	Measured string // what is measured, with the limit as LIMIT
	Limit    Limit
	// Setting is where the limit stands if not in conditions.limits.
	Setting string
	Fix     string
	Page    string // where to look at it
	// Local conditions are of one process or host, the others of the installation.
	Local bool
	// Lasting conditions hold only once they were seen for as long as the limit.
	Lasting bool
	// Slow ones are measured every fifth time.
	Slow bool
}

// List is all conditions, in the order in which people read them.
func List() []Definition {
	return append(append(databaseList(), queueList()...), safetyList()...)
}

func databaseList() []Definition {
	return []Definition{
		{Name: DatabaseDown, Severity: Failing, Local: true, Title: "The database does not answer",
			Measured: "a query of this process fails",
			Fix:      "Start the database server. Check `database.dsn`, then run `cmsjobs doctor`",
			Page:     "/admin/settings"},
		{Name: DatabaseReadOnly, Severity: Failing, Local: true, Title: "The database server is read-only",
			Measured: "a write was refused because the server is read-only",
			Fix:      "Connect to the primary server (`database.dsn`), or run `SET GLOBAL read_only = 0` on it",
			Page:     "/admin/settings"},
		{Name: WritesFailing, Severity: Failing, Local: true, Title: "Claims, results or heartbeats cannot be written",
			Measured: "writes of one type (claim, settle, renew, heartbeat) failed for LIMIT without a success",
			Limit:    duration(15 * time.Second),
			Fix: "The detail has the server's answer. Check the rights, the disk " +
				"and the connection of the database: `cmsjobs doctor`", Page: "/admin/settings"},
		{Name: DiskFull, Severity: Failing, Local: true, Title: "A disk is full", Measured: "the database refused a " +
			"write for lack of space, or a folder that the service writes to has less than LIMIT left",
			Limit: bytes(128 << 20), Fix: "Free space or enlarge the disk. `cmsjobs clean` and `cmsjobs backup " +
				"prune` remove old rows and archives", Page: "/admin/usage"},
		{Name: ClockJump, Severity: Warning, Local: true, Title: "A clock is wrong or jumped",
			Measured: "the database's clock and this host's differ by more than LIMIT, or one of them jumped by so " +
				"much in the last 10 minutes",
			Limit: duration(30 * time.Second), Fix: "Run an NTP service on both hosts (`timedatectl`, `chronyc " +
				"tracking`)", Page: "/admin/settings"},
	}
}

func queueList() []Definition {
	return []Definition{
		{Name: NoWorker, Severity: Failing, Title: "No worker runs", Measured: "due jobs have waited for LIMIT and " +
			"no worker is alive",
			Limit: duration(time.Minute), Fix: "Start the service: `systemctl start cmsjobs`, or `cmsjobs run`",
			Page: "/admin/workers"},
		{Name: QueueUnattended, Severity: Warning, Title: "No worker listens to a queue",
			Measured: "due jobs have waited for LIMIT in a queue that no live worker listens to",
			Limit:    duration(5 * time.Minute), Fix: "Add the queue to `queue.queues` and restart, or run `cmsjobs " +
				"work --queue NAME`", Page: "/admin/queues"},
		{Name: JobOverdue, Severity: Failing, Title: "A due job waits too long", Measured: "the oldest due job of a " +
			"queue that has a worker has waited for LIMIT, and not for the rate of its type",
			Limit: duration(15 * time.Minute), Fix: "Raise `queue.concurrency` or start more workers. `cmsjobs " +
				"workers` shows what they do", Page: "/admin/jobs?status=queued"},
		{Name: StalledJobs, Severity: Warning, Title: "Jobs are stalled", Measured: "the lease of a running job " +
			"ended LIMIT ago and no worker took the job over",
			Limit: duration(5 * time.Minute), Fix: "Run `cmsjobs clean`: it releases them. Then see that a worker " +
				"listens to their queue", Page: "/admin/jobs?status=processing"},
		{Name: UnknownJobs, Severity: Warning, Title: "Jobs have a type that no worker knows",
			Measured: "due jobs have waited for LIMIT whose type neither this program nor a live worker can run",
			Limit:    duration(10 * time.Minute), Fix: "Correct the type (`cmsjobs types` lists them) or start the " +
				"program that knows it. `cmsjobs jobs cancel ID` removes a job", Page: "/admin/jobs?status=queued"},
		{Name: PHPWorker, Severity: Failing, Title: "A PHP worker takes our jobs",
			Measured: "within LIMIT a worker of Laravel failed a job of ours",
			Limit:    duration(time.Hour), Slow: true, Fix: "Let `php artisan queue:work` listen to other queues " +
				"(`--queue=default`), then run `cmsjobs failed retry`", Page: "/admin/failed"},
		{Name: NoScheduler, Severity: Failing, Title: "No scheduler runs", Measured: "no scheduler went through the " +
			"timetable for LIMIT",
			Limit: duration(3 * time.Minute), Fix: "Start `cmsjobs run` (not only `cmsjobs work`) with " +
				"`schedule.enabled: true`", Page: "/admin/schedules"},
		{Name: ScheduleOverdue, Severity: Warning, Title: "A schedule entry is overdue",
			Measured: "LIMIT after its time an entry that ran before has no tick",
			Limit:    duration(10 * time.Minute),
			Fix: "Run `cmsjobs schedule run NAME`. `cmsjobs schedule` shows the " +
				"ticks; the log says why one failed", Page: "/admin/schedules"},
		{Name: CircuitOpen, Severity: Warning, Lasting: true, Title: "A circuit breaker is open",
			Measured: "a dependency has been failing for LIMIT",
			Limit:    duration(15 * time.Minute), Fix: "Repair the dependency, then run `cmsjobs breakers reset NAME`",
			Page: "/admin/jobs?status=queued"},
		{Name: FailureRate, Severity: Failing, Slow: true, Title: "Too many runs fail",
			Measured: "of the runs of the last hour at least 10, and more than LIMIT, failed",
			Limit:    share(50), Fix: "Run `cmsjobs failed groups`: it shows the causes", Page: "/admin/failed"},
		{Name: QueueGrowing, Severity: Warning, Slow: true, Title: "The jobs table is large",
			Measured: "the jobs table holds more than LIMIT rows",
			Limit:    count(100_000), Fix: "Start more workers, or find who enqueues so much: `cmsjobs jobs stats`",
			Page: "/admin/queues"},
		{Name: HistoryGrowing, Severity: Warning, Slow: true, Title: "The history is large",
			Measured: "the numbers of cmsjobs_runs or failed_jobs span more than LIMIT rows",
			Limit:    count(5_000_000),
			Fix:      "Run `cmsjobs clean`. Lower `queue.keep_completed` and `queue.keep_failed`",
			Page:     "/admin/usage"},
	}
}

func safetyList() []Definition {
	return []Definition{
		{Name: NoBackup, Severity: Failing, Slow: true, Title: "There is no recent backup",
			Measured: "the last complete backup is older than LIMIT",
			Limit:    duration(36 * time.Hour), Setting: "backup.alert_after", Fix: "Run `cmsjobs backup create`. " +
				"`cmsjobs backup list` shows what failed", Page: "/admin/backups"},
		{Name: VerificationOld, Severity: Warning, Slow: true, Title: "No backup was verified recently",
			Measured: "the last backup that was verified is older than LIMIT",
			Limit:    duration(8 * 24 * time.Hour), Setting: "backup.alert_unverified",
			Fix: "Run `cmsjobs backup verify`", Page: "/admin/backups"},
		{Name: RestoreUnfinished, Severity: Failing, Slow: true, Title: "A restore did not finish",
			Measured: "a restore neither succeeded nor was rolled back, and its process is dead",
			Fix: "Run `cmsjobs backup restore --undo`, or `--finish` where the detail says that tables were " +
				"exchanged",
			Page: "/admin/backups"},
		{Name: TempDatabasesLeft, Severity: Warning, Slow: true, Lasting: true, Title: "Temporary databases are left " +
			"over", Measured: "databases or files of a verification are still there after LIMIT",
			Limit: duration(4 * time.Hour), Fix: "Remove them when no verification runs: `DROP DATABASE NAME`; the " +
				"detail names them", Page: "/admin/backups"},
		{Name: LogNotArchived, Severity: Warning, Slow: true, Title: "The binary log of the database is not archived",
			Measured: "a part of the log was gone before it was archived, or it cannot be read or stored",
			Fix:      "The detail says what is missing. After a gap run `cmsjobs backup create --only-database`",
			Page:     "/admin/backups"},
	}
}

// Limits reads limits by the names of conditions.
func Limits(texts map[string]string) (map[string]Limit, error) {
	limits := map[string]Limit{}
	for name, text := range texts {
		d, ok := find(name)
		switch {
		case !ok:
			return nil, fmt.Errorf("there is no condition %q; there are %s", name, strings.Join(Names(), ", "))
		case d.Setting != "":
			return nil, fmt.Errorf("the limit of %s is the setting %s", name, d.Setting)
		}
		l, err := ParseLimit(d.Limit.Unit, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		limits[name] = l
	}
	return limits, nil
}

func find(name string) (Definition, bool) {
	for _, d := range List() {
		if d.Name == name {
			return d, true
		}
	}
	return Definition{}, false
}

// Names are the names of all conditions.
func Names() []string {
	var names []string
	for _, d := range List() {
		names = append(names, d.Name)
	}
	return names
}
