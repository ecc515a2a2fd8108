package health

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Metrics are the counters that other packages feed while they work. The queue's
// own figures are read from the store when Prometheus asks.
type Metrics struct {
	Registry *prometheus.Registry

	known               func(string) bool
	queues, classes     labels
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
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "cmsjobs_" + name, Help: help,
			Buckets: buckets}, labels)
		r.MustRegister(v)
		return v
	}
	m.enqueued = counter("jobs_enqueued_total", "Jobs that this process enqueued.", "queue", "type")
	m.processed = counter("jobs_processed_total", "Runs that ended in this process.", "queue", "type", "outcome")
	m.duration = histogram("job_duration_seconds", "How long runs took.", durationBuckets, "type")
	m.wait = histogram("job_wait_seconds", "From the moment a job was due to its start.", waitBuckets, "type")
	m.stalled = counter("stalled_jobs_total", "Jobs taken over from a worker that died or was cut off.").
		WithLabelValues()
	m.scheduleMissed = counter("schedule_missed_total", "Ticks that passed without a job.", "schedule")
	m.mailSent = counter("mail_sent_total", "Recipients of mail by outcome, each try.", "outcome")
	gauge("build_info", "Version of the program, always 1.", "version", "goversion").WithLabelValues(version,
		runtime.Version()).Set(1)
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
func (m *Metrics) Ended(end jobs.Settlement) { m.ended(end, m.label(end.Claimed.Job.Type)) }

// EndedPHP counts a run of a job of PHP's: the type is its class. The first 50 classes
// have their own series, the rest are one together.
func (m *Metrics) EndedPHP(end jobs.Settlement) { m.ended(end, m.classes.of(end.Claimed.Job.Type)) }

func (m *Metrics) ended(end jobs.Settlement, jobType string) {
	queue := end.Claimed.Job.Queue
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
