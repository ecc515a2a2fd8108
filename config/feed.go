package config

import "time"

// Feed says how rows are noticed that other programs insert into the jobs table.
type Feed struct {
	// Probe is the time between two looks for new rows while jobs come, ProbeIdle
	// while none do. A Probe of 0 makes no looks.
	Probe     time.Duration `koanf:"probe"`
	ProbeIdle time.Duration `koanf:"probe_idle"`
}

func defaultFeed() Feed {
	return Feed{Probe: 50 * time.Millisecond, ProbeIdle: 500 * time.Millisecond}
}

func (f Feed) check(r *report) {
	if f.Probe != 0 {
		r.atLeastFor("feed/probe", f.Probe, 5*time.Millisecond)
	}
	r.atLeastFor("feed/probe_idle", f.ProbeIdle, max(f.Probe, 5*time.Millisecond))
}
