package health

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// conditionCollector shows the conditions and what the database keeps of the
// service. Every replica shows the shared ones: take the max, not the sum.
type conditionCollector struct {
	ports                                               Ports
	log                                                 *slog.Logger
	condition, workers, schedulers, circuit, success    *prometheus.Desc
	backedUp, verified, backupBytes, verificationFailed *prometheus.Desc
}

func newConditionCollector(p Ports, log *slog.Logger) *conditionCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("cmsjobs_"+name, help, labels, nil)
	}
	return &conditionCollector{ports: p, log: log,
		condition:  desc("condition", "Whether a condition holds (1) or not (0).", "name", "severity"),
		workers:    desc("workers", "Live workers of the installation."),
		schedulers: desc("schedulers", "Live schedulers of the installation."),
		circuit: desc("breaker_open", "Whether the circuit breaker of a dependency is open (1) or closed "+
			"(0).", "dependency"),
		success: desc("schedule_last_success_timestamp_seconds", "When a schedule entry's job last "+
			"completed; 0 when it never did.", "schedule"),
		backedUp: desc("backup_last_success_timestamp_seconds", "When the last complete backup ended; 0 "+
			"when there was none."),
		verified: desc("backup_last_verified_timestamp_seconds", "When a backup was last verified; 0 when "+
			"none was."),
		backupBytes: desc("backup_bytes", "Size of the last complete backup."),
		verificationFailed: desc("backup_last_proof_failed",
			"1 when the newest verification of a backup found it bad.")}
}

// Describe implements prometheus.Collector.
func (k *conditionCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{k.condition, k.workers, k.schedulers, k.circuit, k.success, k.backedUp,
		k.verified, k.backupBytes, k.verificationFailed} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (k *conditionCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTime)
	defer cancel()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	truth := map[bool]float64{true: 1}
	for _, x := range k.ports.Conditions(ctx) {
		gauge(k.condition, truth[x.Active && !x.Elsewhere], x.Name, x.Severity)
	}
	if k.ports.Figures == nil {
		return
	}
	f, err := k.ports.Figures(ctx)
	if err != nil {
		k.log.Warn("figures of the service not read", "event", "metrics.read_failed", "error", err)
		return
	}
	gauge(k.workers, float64(f.Workers))
	gauge(k.schedulers, float64(f.Schedulers))
	k.collectStored(gauge, f)
}

// collectStored shows what is there by name, or not at all.
func (k *conditionCollector) collectStored(gauge func(*prometheus.Desc, float64, ...string), f StoredFigures) {
	if f.Backups {
		gauge(k.backedUp, unixOrZero(f.BackedUp))
		gauge(k.verified, unixOrZero(f.Verified))
		gauge(k.backupBytes, float64(f.BackupBytes))
		gauge(k.verificationFailed, map[bool]float64{true: 1}[f.VerificationFailed])
	}
	for dependency, open := range f.Circuits {
		gauge(k.circuit, map[bool]float64{true: 1}[open], dependency)
	}
	for entry, at := range f.Successes {
		gauge(k.success, unixOrZero(at), entry)
	}
}

func unixOrZero(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix())
}
