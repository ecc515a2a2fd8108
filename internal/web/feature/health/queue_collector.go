package health

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// queueCollector reads the queue's figures when Prometheus asks, once in
// collectEvery however many ask.
type queueCollector struct {
	cfg     web.Config
	workers Workers
	jobs    *prometheus.Desc
	wait    *prometheus.Desc
	up      *prometheus.Desc
	busy    *prometheus.Desc
	php     *prometheus.Desc

	mu      sync.Mutex
	read    time.Time
	stats   jobs.Stats
	runs    map[string]int // that go on now, by type
	classes labels         // of PHP's jobs among them
	err     error
}

const (
	collectEvery = 5 * time.Second
	collectTime  = 5 * time.Second
)

func newQueueCollector(cfg web.Config, workers Workers) *queueCollector {
	return &queueCollector{cfg: cfg, workers: workers,
		jobs: prometheus.NewDesc("cmsjobs_queue_jobs", "Jobs in a queue by status.", []string{"queue", "status"}, nil),
		wait: prometheus.NewDesc("cmsjobs_queue_latency_seconds", "How long the oldest due job of a queue has waited.",
			[]string{"queue"}, nil),
		busy: prometheus.NewDesc("cmsjobs_jobs_in_progress", "Runs going on in all live workers.", []string{"type"},
			nil),
		php: prometheus.NewDesc("cmsjobs_php_processes", "PHP processes that run PHP's jobs of a queue.",
			[]string{"queue"}, nil),
		up: prometheus.NewDesc("cmsjobs_database_up", "Whether the queue's figures could be read.", nil, nil)}
}

// Describe implements prometheus.Collector.
func (q *queueCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- q.jobs
	ch <- q.wait
	ch <- q.up
	ch <- q.busy
	ch <- q.php
}

// Collect implements prometheus.Collector.
func (q *queueCollector) Collect(ch chan<- prometheus.Metric) {
	stats, runs, err := q.figures()
	up := 1.0
	if err != nil {
		up = 0
	}
	ch <- prometheus.MustNewConstMetric(q.up, prometheus.GaugeValue, up)
	for _, s := range fewQueues(stats.Queues, stats.More) {
		for status, n := range map[string]int64{"queued": s.Queued, "delayed": s.Delayed, "processing": s.Processing,
			"foreign": s.Foreign} {
			ch <- prometheus.MustNewConstMetric(q.jobs, prometheus.GaugeValue, float64(n), s.Queue, status)
		}
		ch <- prometheus.MustNewConstMetric(q.wait, prometheus.GaugeValue, s.Oldest.Seconds(), s.Queue)
		if s.PHPProcesses > 0 {
			ch <- prometheus.MustNewConstMetric(q.php, prometheus.GaugeValue, float64(s.PHPProcesses), s.Queue)
		}
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
	if q.workers == nil {
		return runs, nil
	}
	workers, err := q.workers.Workers(ctx)
	for _, w := range workers {
		if !w.Alive {
			continue
		}
		for _, r := range w.Running {
			jobType := r.Type
			if _, known := q.cfg.Registry.Lookup(jobType); !known {
				jobType = otherLabel
			}
			runs[jobType]++
		}
		for _, p := range w.PHP {
			if p.Job != nil {
				runs[q.classes.of(p.Job.Type)]++
			}
		}
	}
	return runs, err
}
