package web

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Metrics are the counters that the rooms feed while they work. The queue's
// own figures are read from the store when Prometheus asks.
type Metrics struct {
	Registry *prometheus.Registry

	known               func(string) bool
	queues              labels
	enqueued, processed *prometheus.CounterVec
	duration, wait      *prometheus.HistogramVec
	stalled             prometheus.Counter
	scheduleMissed      *prometheus.CounterVec
	mailSent            *prometheus.CounterVec
}

// Buckets reach from a millisecond to the longest timeout (4 h).
var (
	durationBuckets = []float64{.001, .005, .025, .1, .5, 1, 5, 15, 60, 300, 900, 3600, 14400}
	waitBuckets     = []float64{.001, .005, .025, .1, .5, 1, 3, 10, 60, 300, 1800, 7200, 86400}
)

// NewMetrics makes the counters. known says whether a name is a type: others
// are counted as "other", as labels must be few.
func NewMetrics(version string, known func(string) bool) *Metrics {
	r := prometheus.NewRegistry()
	m := &Metrics{Registry: r, known: known}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cmsjobs_" + name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "cmsjobs_" + name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "cmsjobs_" + name, Help: help, Buckets: buckets}, labels)
		r.MustRegister(v)
		return v
	}
	m.enqueued = counter("jobs_enqueued_total", "Jobs that this process enqueued.", "queue", "type")
	m.processed = counter("jobs_processed_total", "Runs that ended in this process.", "queue", "type", "outcome")
	m.duration = histogram("job_duration_seconds", "How long runs took.", durationBuckets, "type")
	m.wait = histogram("job_wait_seconds", "From the moment a job was due to its start.", waitBuckets, "type")
	m.stalled = counter("stalled_jobs_total", "Jobs taken over from a worker that died or was cut off.").WithLabelValues()
	m.scheduleMissed = counter("schedule_missed_total", "Ticks that passed without a job.", "schedule")
	m.mailSent = counter("mail_sent_total", "Recipients of mail by outcome, each try.", "outcome")
	gauge("build_info", "Version of the program, always 1.", "version", "goversion").WithLabelValues(version, runtime.Version()).Set(1)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *Metrics) label(jobType string) string {
	if m.known(jobType) {
		return jobType
	}
	return otherLabel
}

// Enqueued counts a job that was put into a queue.
func (m *Metrics) Enqueued(queue, jobType string) {
	m.enqueued.WithLabelValues(m.queues.of(queue), m.label(jobType)).Inc()
}

// Ended counts a run that ended; it is jobs.Config.Ended.
func (m *Metrics) Ended(end jobs.Settlement) {
	jobType, queue := m.label(end.Claimed.Job.Type), end.Claimed.Job.Queue
	m.processed.WithLabelValues(m.queues.of(queue), jobType, end.Outcome.String()).Inc()
	m.duration.WithLabelValues(jobType).Observe(end.Duration.Seconds())
	m.wait.WithLabelValues(jobType).Observe(max(end.Wait, 0).Seconds())
	if end.Claimed.Rescued {
		m.stalled.Inc()
	}
}

// Missed counts a tick that passed without a job.
func (m *Metrics) Missed(entry string) { m.scheduleMissed.WithLabelValues(entry).Inc() }

// Mailed counts recipients by what became of them: accepted, deferred,
// refused, unknown, suppressed, expired.
func (m *Metrics) Mailed(outcome string, recipients int) {
	m.mailSent.WithLabelValues(outcome).Add(float64(recipients))
}

// queueCollector reads the queue's figures when Prometheus asks, once in
// collectEvery however many ask.
type queueCollector struct {
	cfg  Config
	jobs *prometheus.Desc
	wait *prometheus.Desc
	up   *prometheus.Desc
	busy *prometheus.Desc

	mu    sync.Mutex
	read  time.Time
	stats jobs.Stats
	runs  map[string]int // that go on now, by type
	err   error
}

const (
	collectEvery = 5 * time.Second
	collectTime  = 5 * time.Second
)

func newQueueCollector(cfg Config) *queueCollector {
	return &queueCollector{cfg: cfg,
		jobs: prometheus.NewDesc("cmsjobs_queue_jobs", "Jobs in a queue by status.", []string{"queue", "status"}, nil),
		wait: prometheus.NewDesc("cmsjobs_queue_latency_seconds", "How long the oldest due job of a queue has waited.", []string{"queue"}, nil),
		busy: prometheus.NewDesc("cmsjobs_jobs_in_progress", "Runs going on in all live workers.", []string{"type"}, nil),
		up:   prometheus.NewDesc("cmsjobs_database_up", "Whether the queue's figures could be read.", nil, nil)}
}

// Describe implements prometheus.Collector.
func (q *queueCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- q.jobs
	ch <- q.wait
	ch <- q.up
	ch <- q.busy
}

// Collect implements prometheus.Collector.
func (q *queueCollector) Collect(ch chan<- prometheus.Metric) {
	stats, runs, err := q.figures()
	up := 1.0
	if err != nil {
		up = 0
	}
	ch <- prometheus.MustNewConstMetric(q.up, prometheus.GaugeValue, up)
	for _, s := range fewQueues(stats.Queues) {
		for status, n := range map[string]int64{"queued": s.Queued, "delayed": s.Delayed, "processing": s.Processing, "foreign": s.Foreign} {
			ch <- prometheus.MustNewConstMetric(q.jobs, prometheus.GaugeValue, float64(n), s.Queue, status)
		}
		ch <- prometheus.MustNewConstMetric(q.wait, prometheus.GaugeValue, s.Oldest.Seconds(), s.Queue)
	}
	for jobType, n := range runs {
		ch <- prometheus.MustNewConstMetric(q.busy, prometheus.GaugeValue, float64(n), jobType)
	}
	if err == nil {
		ch <- prometheus.MustNewConstMetric(q.jobs, prometheus.GaugeValue, float64(stats.Failed), "", "failed")
	}
}

func (q *queueCollector) figures() (jobs.Stats, map[string]int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := q.cfg.Now(); q.read.IsZero() || now.Sub(q.read) >= collectEvery {
		ctx, cancel := context.WithTimeout(context.Background(), collectTime)
		defer cancel()
		if q.stats, q.err = q.cfg.Ledger.Stats(ctx); q.err == nil {
			q.runs, q.err = q.running(ctx)
		}
		q.read = now
		if q.err != nil {
			q.stats = jobs.Stats{}
			q.cfg.Log.Warn("figures of the queue not read", "event", "metrics.read_failed", "error", q.err)
		}
	}
	return q.stats, q.runs, q.err
}

func (q *queueCollector) running(ctx context.Context) (map[string]int, error) {
	runs := map[string]int{}
	for _, jobType := range q.cfg.Registry.Types() {
		runs[jobType] = 0
	}
	if q.cfg.Workers == nil {
		return runs, nil
	}
	workers, err := q.cfg.Workers.Workers(ctx)
	for _, w := range workers {
		for _, r := range w.Running {
			if w.Alive {
				jobType := r.Type
				if _, known := q.cfg.Registry.Lookup(jobType); !known {
					jobType = otherLabel
				}
				runs[jobType]++
			}
		}
	}
	return runs, err
}

func (s *Server) metrics(c echo.Context) error {
	promhttp.HandlerFor(s.cfg.Metrics, promhttp.HandlerOpts{}).ServeHTTP(c.Response(), c.Request())
	return nil
}
