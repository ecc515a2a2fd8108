package config

import "time"

// Analytics says whether page views are collected, and how long they are kept.
type Analytics struct {
	Collect   bool              `koanf:"collect"`
	Hosts     []string          `koanf:"hosts"`
	HonourDNT bool              `koanf:"honour_dnt"`
	KeepRaw   time.Duration     `koanf:"keep_raw"`
	MMDB      string            `koanf:"mmdb"`
	Rate      int               `koanf:"rate"` // views a minute from one address
	Buffer    int               `koanf:"buffer"`
	Weekly    bool              `koanf:"weekly"`     // a mail every Monday
	WeeklyTo  []string          `koanf:"weekly_to"`  // else mail.admin, else the CMS's admin_email
	ServerKey Secret            `koanf:"server_key"` // "" closes POST /collect/server
	Table     string            `koanf:"table"`
	Columns   map[string]string `koanf:"columns"`
	// LogAddress is what the service's log has of a visitor's address: drop, shorten.
	LogAddress string `koanf:"log_address"`
}

func defaultAnalytics() Analytics {
	return Analytics{HonourDNT: true, LogAddress: "drop", KeepRaw: 90 * day, Rate: 300, Buffer: 10000,
		Columns: map[string]string{}}
}

func (a Analytics) check(r *report) {
	r.oneOf("analytics/log_address", a.LogAddress, "drop", "shorten")
	r.atLeastFor("analytics/keep_raw", a.KeepRaw, 0)
	r.between("analytics/rate", a.Rate, 1, 1_000_000)
	r.between("analytics/buffer", a.Buffer, 100, 10_000_000)
	if key := a.ServerKey.Reveal(); key != "" && len(key) < minServerKey {
		r.add("analytics/server_key", "it has %d characters, and needs %d: openssl rand -hex 32", len(key),
			minServerKey)
	}
	if a.Table == "" && len(a.Columns) > 0 {
		r.add("analytics/columns", "columns are mapped, but analytics.table names no table")
	}
}

// minServerKey keeps keys from being guessed.
const minServerKey = 24
