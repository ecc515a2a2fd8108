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
	for _, network := range w.AllowPrivate {
		if _, err := netip.ParsePrefix(network); err != nil {
			r.add("webhook/allow_private", "%q is no network, for example 10.1.0.0/16", network)
		}
	}
}

// Networks are AllowPrivate as values; the configuration was checked.
func (w Webhook) Networks() []netip.Prefix {
	var list []netip.Prefix
	for _, network := range w.AllowPrivate {
		if p, err := netip.ParsePrefix(network); err == nil {
			list = append(list, p)
		}
	}
	return list
}
