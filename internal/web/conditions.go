package web

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
)

// Condition is one thing that can be wrong, and whether it is.
type Condition struct {
	Name     string    `json:"name"`
	Severity string    `json:"severity"` // failing, warning
	Active   bool      `json:"active"`
	Title    string    `json:"title"`
	Detail   string    `json:"detail,omitempty"`
	Since    time.Time `json:"since,omitzero"` // of the last change
	Limit    string    `json:"limit,omitempty"`
	Fix      string    `json:"fix"`
	Page     string    `json:"page,omitempty"` // where to look at it
	// Elsewhere says that another process saw it, about itself or its host.
	Elsewhere bool   `json:"elsewhere,omitempty"`
	Error     string `json:"error,omitempty"` // why it could not be measured
}

// failing is the severity that makes the service unready.
const failing = "failing"

// ConditionList is what GET /api/v1/conditions answers.
type ConditionList struct {
	Items []Condition `json:"items"`
}

// StoredFigures are what metrics read from the database, so that they survive
// a restart.
type StoredFigures struct {
	// Workers are the live ones, Schedulers those that went through the
	// timetable lately.
	Workers, Schedulers int
	// Circuits say of each dependency that ever failed whether its circuit
	// breaker is open.
	Circuits map[string]bool
	// Successes are when the jobs of schedule entries last completed; zero for
	// one that has ticks and no success.
	Successes map[string]time.Time
	// Backups says that backups are made here; BackedUp and Verified are zero
	// where there was none.
	Backups            bool
	BackedUp, Verified time.Time
	BackupBytes        int64
	VerificationFailed bool // the newest verification
}

func (s *Server) conditions(ctx context.Context) []Condition {
	if s.cfg.Conditions == nil {
		return nil
	}
	return s.cfg.Conditions(ctx)
}

func (s *Server) listConditions(c echo.Context) error {
	list := s.conditions(c.Request().Context())
	if list == nil {
		list = []Condition{}
	}
	return c.JSON(http.StatusOK, ConditionList{list})
}

// ready answers 503 while a check or a failing condition says so. check=NAME
// asks for these alone, warnings included.
func (s *Server) ready(c echo.Context) error {
	h := Health{Status: "ok", Version: s.cfg.Version}
	asked := strings.FieldsFunc(c.QueryParam("check"), func(r rune) bool { return r == ',' })
	for _, name := range asked {
		if !slices.Contains(s.cfg.ConditionNames, name) && !slices.ContainsFunc(s.cfg.Ready, func(k Check) bool { return k.Name == name }) {
			return fieldError(http.StatusBadRequest, "check", "There is no check %q. There are: %s.", name, strings.Join(s.cfg.ConditionNames, ", "))
		}
	}
	wanted := func(name string) bool { return len(asked) == 0 || slices.Contains(asked, name) }
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyTime)
	defer cancel()
	for _, name := range s.failing(ctx) {
		if wanted(name) {
			h.Failing = append(h.Failing, name)
		}
	}
	for _, x := range s.conditions(ctx) {
		switch {
		case !x.Active || x.Elsewhere || !wanted(x.Name) || slices.Contains(h.Failing, x.Name):
		case x.Severity == failing || len(asked) > 0:
			h.Failing = append(h.Failing, x.Name)
		default:
			h.Warnings = append(h.Warnings, x.Name)
		}
	}
	if len(h.Failing) > 0 {
		h.Status = "unready"
		return c.JSON(http.StatusServiceUnavailable, h)
	}
	return c.JSON(http.StatusOK, h)
}

// conditionCollector shows the conditions and what the database keeps of the
// service. Every replica shows the shared ones: take the max, not the sum.
type conditionCollector struct {
	cfg                                                 Config
	condition, workers, schedulers, circuit, success    *prometheus.Desc
	backedUp, verified, backupBytes, verificationFailed *prometheus.Desc
}

func newConditionCollector(cfg Config) *conditionCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("cmsjobs_"+name, help, labels, nil)
	}
	return &conditionCollector{cfg: cfg,
		condition:          desc("condition", "Whether a condition holds (1) or not (0).", "name", "severity"),
		workers:            desc("workers", "Live workers of the installation."),
		schedulers:         desc("schedulers", "Live schedulers of the installation."),
		circuit:            desc("breaker_open", "Whether the circuit breaker of a dependency is open (1) or closed (0).", "dependency"),
		success:            desc("schedule_last_success_timestamp_seconds", "When a schedule entry's job last completed; 0 when it never did.", "schedule"),
		backedUp:           desc("backup_last_success_timestamp_seconds", "When the last complete backup ended; 0 when there was none."),
		verified:           desc("backup_last_verified_timestamp_seconds", "When a backup was last verified; 0 when none was."),
		backupBytes:        desc("backup_bytes", "Size of the last complete backup."),
		verificationFailed: desc("backup_last_proof_failed", "1 when the newest verification of a backup found it bad.")}
}

// Describe implements prometheus.Collector.
func (k *conditionCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{k.condition, k.workers, k.schedulers, k.circuit, k.success, k.backedUp, k.verified, k.backupBytes, k.verificationFailed} {
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
	if k.cfg.Conditions != nil {
		for _, x := range k.cfg.Conditions(ctx) {
			gauge(k.condition, truth[x.Active && !x.Elsewhere], x.Name, x.Severity)
		}
	}
	if k.cfg.Figures == nil {
		return
	}
	f, err := k.cfg.Figures(ctx)
	if err != nil {
		k.cfg.Log.Warn("figures of the service not read", "event", "metrics.read_failed", "error", err)
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
