package config

import (
	"net/netip"
	"time"
)

// Webhook says how events are delivered to subscribers.
type Webhook struct {
	Timeout      time.Duration `koanf:"timeout"`
	AllowPrivate []string      `koanf:"allow_private"`
	AllowHTTP    bool          `koanf:"allow_http"`
	Secret       Secret        `koanf:"secret"`
}

func defaultWebhook() Webhook { return Webhook{Timeout: 15 * time.Second} }

func (w Webhook) check(r *report) {
	r.atLeastFor("webhook/timeout", w.Timeout, time.Second)
	r.networks("webhook/allow_private", w.AllowPrivate)
}

// Networks are AllowPrivate as values; the configuration was checked.
func (w Webhook) Networks() []netip.Prefix { return networks(w.AllowPrivate) }
