package config

// Telemetry says where the service tells what its jobs do, besides /metrics.
type Telemetry struct {
	// Traces is a collector's address for OTLP over HTTP; "" sends nothing.
	Traces string `koanf:"traces"`
	// Authorization is that header's value, for collectors that ask for one.
	Authorization Secret `koanf:"authorization"`
	// Share of the traces that begin here, 0 to 1.
	Share float64 `koanf:"share"`
}

// Activity says what the audit log holds of jobs, besides what people and programs
// do.
type Activity struct {
	Failed bool `koanf:"failed"` // every job that failed for good
	// Enqueued types are recorded each time that the service enqueues one by
	// itself, others with the probability Share.
	Enqueued []string `koanf:"enqueued"`
	Share    float64  `koanf:"share"`
}

func defaultTelemetry() Telemetry { return Telemetry{Share: 1} }

func defaultActivity() Activity {
	return Activity{Failed: true, Enqueued: []string{"backup.generate", "content.publish"}, Share: 0.01}
}

func (t Telemetry) check(r *report) {
	r.webURL("telemetry/traces", t.Traces)
	r.share("telemetry/share", t.Share)
}

func (a Activity) check(r *report) { r.share("activity/share", a.Share) }
