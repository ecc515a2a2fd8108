package config

import "time"

// Publish says how content that is dated ahead is published.
type Publish struct {
	Watch bool          `koanf:"watch"`
	Every time.Duration `koanf:"every"`
	Mail  bool          `koanf:"mail"`
}

func defaultPublish() Publish { return Publish{Watch: true, Every: time.Minute} }

func (p Publish) check(r *report) { r.atLeastFor("publish/every", p.Every, time.Second) }
