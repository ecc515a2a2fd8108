package config

import "time"

// Feed says how rows are noticed that other programs insert into the jobs table.
type Feed struct {
	// Mode is which change feed of the database makes looks happen at once: auto,
	// off, binlog (MariaDB, MySQL), notify or replication (PostgreSQL).
	Mode string `koanf:"mode"`
	// DSN is the account that reads the feed; empty: that of database.dsn.
	DSN DSN `koanf:"dsn"`
	// Socket is where the Laravel package sends a datagram after a job was
	// committed; empty: storage/framework/cmsjobs.sock of the CMS; off.
	Socket string `koanf:"socket"`
	// Probe is the time between two looks for new rows while jobs come, ProbeIdle
	// while none do. A Probe of 0 makes no looks.
	Probe     time.Duration `koanf:"probe"`
	ProbeIdle time.Duration `koanf:"probe_idle"`
}

func defaultFeed() Feed {
	return Feed{Mode: "auto", Probe: 50 * time.Millisecond, ProbeIdle: 500 * time.Millisecond}
}

func (f Feed) check(r *report, site DSN) {
	r.oneOf("feed/mode", f.Mode, "auto", "off", "binlog", "notify", "replication")
	driver, err := site.Driver()
	for mode, only := range map[string]string{"binlog": "mysql", "notify": "pgx", "replication": "pgx"} {
		if f.Mode == mode && err == nil && driver != only {
			r.add("feed/mode", "%s is no feed of this database; auto takes what it has", mode)
		}
	}
	if f.DSN != "" {
		own, ownErr := f.DSN.Driver()
		if ownErr != nil {
			r.add("feed/dsn", "%v", ownErr)
		} else if err == nil && own != driver {
			r.add("feed/dsn", "it is the address of another kind of database than database.dsn")
		}
	}
	if f.Probe != 0 {
		r.atLeastFor("feed/probe", f.Probe, 5*time.Millisecond)
	}
	r.atLeastFor("feed/probe_idle", f.ProbeIdle, max(f.Probe, 5*time.Millisecond))
}
