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
