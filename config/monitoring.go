package config

import (
	"net/url"
	"time"
)

// Conditions says how often the service looks at itself, which of its findings
// are wanted, and whom it calls while all is well.
type Conditions struct {
	Enabled   bool              `koanf:"enabled"`
	Every     time.Duration     `koanf:"every"`
	Notify    bool              `koanf:"notify"`
	Off       []string          `koanf:"off"`
	Limits    map[string]string `koanf:"limits"` // by name; what they count depends on the condition
	PingURL   Secret            `koanf:"ping_url"`
	PingEvery time.Duration     `koanf:"ping_every"`
}

func defaultConditions() Conditions {
	return Conditions{Enabled: true, Every: 20 * time.Second, Notify: true, Limits: map[string]string{},
		PingEvery: time.Minute}
}

func (c Conditions) check(r *report) {
	r.atLeastFor("conditions/every", c.Every, time.Second)
	r.atLeastFor("conditions/ping_every", c.PingEvery, time.Second)
	r.pingURL("conditions/ping_url", c.PingURL)
}

// pingURL wants an address of HTTP, or none. The fault does not repeat it: it
// is the key to the monitor.
func (r *report) pingURL(path string, secret Secret) {
	if secret == "" {
		return
	}
	if u, err := url.Parse(secret.Reveal()); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		r.add(path, "it is no address like https://hc-ping.com/…")
	}
}

// Notify says how administrators hear of failed jobs, missed ticks and bad
// backups.
type Notify struct {
	Mail     bool          `koanf:"mail"`
	CMS      bool          `koanf:"cms"`
	Every    time.Duration `koanf:"every"` // at most one message a type in this time
	Channels []Channel     `koanf:"channels"`
}

// Channel is a chat that takes messages over HTTP.
type Channel struct {
	Name   string `koanf:"name"` // the type when empty
	Type   string `koanf:"type"` // slack, discord, telegram, teams, generic
	URL    Secret `koanf:"url"`  // such addresses are the key to the chat
	ChatID string `koanf:"chat_id"`
	Level  string `koanf:"level"` // the least that goes here: info, warning, error
}

func defaultNotify() Notify { return Notify{Mail: true, CMS: true, Every: time.Hour} }

// Silent says that nobody is notified.
func (n Notify) Silent() bool { return !n.Mail && !n.CMS && len(n.Channels) == 0 }

func (n Notify) check(r *report) {
	r.atLeastFor("notify/every", n.Every, 0)
	for _, c := range n.Channels {
		r.oneOf("notify/channels", c.Type, "slack", "discord", "telegram", "teams", "generic")
		if c.Level != "" {
			r.oneOf("notify/channels", c.Level, "info", "warning", "error")
		}
		if c.URL == "" {
			r.add("notify/channels", "a %s channel needs its url", c.Type)
		}
	}
}

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
