package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Queue says how jobs are claimed, run, kept and given up.
type Queue struct {
	Enabled  bool     `koanf:"enabled"` // false: enqueuing runs the job at once, in place
	Worker   bool     `koanf:"worker"`  // false: run starts no worker
	Queues   []string `koanf:"queues"`
	Default  string   `koanf:"default"`
	WorkerID string   `koanf:"worker_id"`

	Poll      time.Duration `koanf:"poll"`
	PollFirst time.Duration `koanf:"poll_first"`
	Refresh   time.Duration `koanf:"refresh"`

	Concurrency int           `koanf:"concurrency"`
	Prefetch    int           `koanf:"prefetch"`
	Lease       time.Duration `koanf:"lease"`
	Jitter      float64       `koanf:"jitter"`

	// Encrypt stores fields that hold secrets encrypted, where there is a key: EncryptionKey,
	// else the CMS's APP_KEY. PreviousKeys are read too.
	Encrypt       bool     `koanf:"encrypt"`
	EncryptionKey Secret   `koanf:"encryption_key"`
	PreviousKeys  []Secret `koanf:"previous_keys"`

	Memory  Size          `koanf:"memory"`
	Grace   time.Duration `koanf:"grace"`
	MaxJobs int           `koanf:"max_jobs"`
	MaxTime time.Duration `koanf:"max_time"`

	HeartbeatStale time.Duration `koanf:"heartbeat_stale"`
	KeepCompleted  time.Duration `koanf:"keep_completed"`
	KeepFailed     time.Duration `koanf:"keep_failed"`
	ExportDir      string        `koanf:"export_dir"`
	// PHPRetryAfter is Laravel's DB_QUEUE_RETRY_AFTER: the lease must be
	// shorter to be seen by a PHP worker on the same table.
	PHPRetryAfter time.Duration `koanf:"php_retry_after"`
	// InternalRows are internal types that rows may carry without an order.
	InternalRows []string `koanf:"internal_rows"`
}

// leastKey is how many characters a key of encryption has at least.
const leastKey = 32

// rowKinds are the internal types that may be opened to rows.
var rowKinds = []string{"cmsjobs.probe", "webhook.deliver"}

func defaultQueue() Queue {
	return Queue{
		Enabled: true, Worker: true, Encrypt: true,
		Queues: []string{"cmsjobs", "default"}, Default: "cmsjobs",
		Poll: 3 * time.Second, PollFirst: 500 * time.Millisecond, Refresh: 300 * time.Second,
		Concurrency: 1, Prefetch: 512, Lease: 90 * time.Second,
		Memory: 512 << 20, Grace: 30 * time.Second,
		HeartbeatStale: 300 * time.Second, KeepCompleted: 7 * day, KeepFailed: 30 * day,
		PHPRetryAfter: 90 * time.Second,
	}
}

// checkKeys refuses keys that could be guessed.
func (q Queue) checkKeys(r *report) {
	for i, key := range append([]Secret{q.EncryptionKey}, q.PreviousKeys...) {
		if n := len(key.Reveal()); n > 0 && n < leastKey {
			path := "queue/encryption_key"
			if i > 0 {
				path = fmt.Sprintf("queue/previous_keys/%d", i-1)
			}
			r.add(path, "has %d characters; a key needs at least %d: openssl rand -base64 32 prints one", n, leastKey)
		}
	}
}

func (q Queue) check(r *report) {
	if len(q.Queues) == 0 {
		r.add("queue/queues", "at least one queue must be named")
	}
	for _, name := range append([]string{q.Default}, q.Queues...) {
		if jobs.CheckQueue(name) != nil {
			r.add("queue/queues", "%q is no name of a queue", name)
		}
	}
	for _, name := range q.InternalRows {
		if !slices.Contains(rowKinds, name) {
			r.add("queue/internal_rows", "%q cannot be made by rows; possible are %s", name,
				strings.Join(rowKinds, ", "))
		}
	}
	r.atLeastFor("queue/poll", q.Poll, time.Millisecond)
	r.atLeastFor("queue/poll_first", q.PollFirst, time.Millisecond)
	if q.PollFirst > q.Poll {
		r.add("queue/poll_first", "the first wait (%s) cannot be longer than the longest (queue.poll, %s)",
			q.PollFirst, q.Poll)
	}
	r.atLeastFor("queue/refresh", q.Refresh, time.Second)
	r.between("queue/concurrency", q.Concurrency, 1, jobs.MaxSlots)
	r.between("queue/prefetch", q.Prefetch, 0, 10000)
	r.atLeastFor("queue/lease", q.Lease, 3*time.Second)
	if q.PHPRetryAfter > 0 && q.Lease > q.PHPRetryAfter {
		r.add("queue/lease", "%s is longer than PHP's retry_after (%s): a PHP worker on the same table would take "+
			"running jobs", q.Lease, q.PHPRetryAfter)
	}
	r.share("queue/jitter", q.Jitter)
	q.checkKeys(r)
	if q.Memory != 0 && q.Memory < 32<<20 {
		r.add("queue/memory", "%s is too small to work in: at least 32MiB, or 0 for no limit", q.Memory)
	}
	r.atLeast("queue/max_jobs", q.MaxJobs, 0)
	for path, d := range map[string]time.Duration{"queue/grace": q.Grace, "queue/max_time": q.MaxTime,
		"queue/keep_completed": q.KeepCompleted, "queue/keep_failed": q.KeepFailed,
		"queue/php_retry_after": q.PHPRetryAfter} {
		r.atLeastFor(path, d, 0)
	}
	r.atLeastFor("queue/heartbeat_stale", q.HeartbeatStale, 30*time.Second)
}

// JobType overrides what one job type says of itself. Zero fields leave it as
// it is.
type JobType struct {
	Queue       string          `koanf:"queue"`
	MaxAttempts int             `koanf:"max_attempts"`
	Timeout     time.Duration   `koanf:"timeout"`
	Backoff     []time.Duration `koanf:"backoff"`
	Limit       int             `koanf:"limit"`
	MaxAge      time.Duration   `koanf:"max_age"`
	Rate        []string        `koanf:"rate"` // as jobs.ParseRate reads them
}

// Rates are the rates that can be read; check names the others.
func (k JobType) Rates() []jobs.Rate {
	list, _ := jobs.ParseRates(k.Rate)
	return list
}

func checkKinds(kinds map[string]JobType, r *report) {
	for name, k := range kinds {
		path := "types" + slash + name + slash
		r.between(path+"max_attempts", k.MaxAttempts, 0, 255)
		r.atLeastFor(path+"timeout", k.Timeout, 0)
		r.atLeast(path+"limit", k.Limit, 0)
		r.atLeastFor(path+"max_age", k.MaxAge, 0)
		if _, err := jobs.ParseRates(k.Rate); err != nil {
			r.add(path+"rate", "%v", err)
		}
		for _, wait := range k.Backoff {
			r.atLeastFor(path+"backoff", wait, 0)
		}
		if k.Queue != "" && jobs.CheckQueue(k.Queue) != nil {
			r.add(path+"queue", "%q is no name of a queue", k.Queue)
		}
	}
}
