package config

import (
	"slices"
	"strings"
	"time"
)

// Backup says what is saved, where to, how many are kept and how they are
// verified.
type Backup struct {
	Dir         string        `koanf:"dir"`
	To          []string      `koanf:"to"`   // local, s3, sftp
	Form        string        `koanf:"form"` // archive, repository
	FullEvery   time.Duration `koanf:"full_every"`
	Format      string        `koanf:"format"` // tar.zst, tar.gz, zip
	Tool        string        `koanf:"tool"`   // own, mysqldump
	Profile     string        `koanf:"profile"`
	Keep        int           `koanf:"keep"`
	Weekly      int           `koanf:"weekly"`
	Monthly     int           `koanf:"monthly"`
	MinAge      time.Duration `koanf:"min_age"`
	MinInterval time.Duration `koanf:"min_interval"`
	MaxTotal    Size          `koanf:"max_total"`
	// Places overrides, by place, how long backups are kept there.
	Places      map[string]BackupPlace `koanf:"places"`
	Include     []string               `koanf:"include"`
	Exclude     []string               `koanf:"exclude"`
	NoTables    []string               `koanf:"exclude_tables"`
	NoRows      []string               `koanf:"schema_only"`
	WithSecrets bool                   `koanf:"with_secrets"`
	TrustedKeys []string               `koanf:"trusted_keys"`
	Throttle    Size                   `koanf:"throttle"`
	Stall       time.Duration          `koanf:"stall"`
	Age         []string               `koanf:"age_recipients"`
	Identity    []string               `koanf:"age_identities"` // files
	Verify      string                 `koanf:"verify"`         // restore, read, off
	VerifyDSN   DSN                    `koanf:"verify_dsn"`
	VerifyMax   Size                   `koanf:"verify_max"`
	Budget      time.Duration          `koanf:"verify_budget"`
	Log         string                 `koanf:"log"` // auto, on, off
	LogEvery    time.Duration          `koanf:"log_every"`
	LogDSN      DSN                    `koanf:"log_dsn"`
	Freespace   Size                   `koanf:"free_space"`
	Alert       time.Duration          `koanf:"alert_after"`
	Unverified  time.Duration          `koanf:"alert_unverified"`
	Notify      string                 `koanf:"notify"` // failure, always
	Digest      bool                   `koanf:"digest"`
}

// BackupPlace overrides the retention of one place. Zero fields leave it as it is.
type BackupPlace struct {
	Keep     int           `koanf:"keep"`
	Weekly   int           `koanf:"weekly"`
	Monthly  int           `koanf:"monthly"`
	MinAge   time.Duration `koanf:"min_age"`
	MaxTotal Size          `koanf:"max_total"`
	// Bandwidth is how many bytes a second go to the place and come from it; 0 is no limit.
	Bandwidth Size `koanf:"bandwidth"`
}

// backupPlaces are where backups can go.
var backupPlaces = []string{"local", "s3", "sftp"}

func defaultBackup() Backup {
	return Backup{To: []string{"local"}, Form: "repository", FullEvery: 7 * 24 * time.Hour, Format: "tar.zst",
		Tool:    "own",
		Profile: "own", Keep: 7, Weekly: 4,
		Monthly: 3, MinAge: 72 * time.Hour, MinInterval: time.Hour,
		NoRows: []string{"cache", "cache_locks", "sessions", "jobs"}, Stall: 5 * time.Minute, Verify: "restore",
		Budget: time.Hour, Log: "auto", LogEvery: time.Minute,
		Freespace: 1 << 30, Alert: 36 * time.Hour, Unverified: 8 * 24 * time.Hour,
		Notify: "failure", Digest: true}
}

func (b Backup) check(r *report) {
	if len(b.To) == 0 {
		r.add("backup/to", "at least one place is needed: %s", strings.Join(backupPlaces, ", "))
	}
	for _, to := range b.To {
		r.oneOf("backup/to", to, backupPlaces...)
	}
	r.oneOf("backup/form", b.Form, "archive", "repository")
	r.atLeastFor("backup/full_every", b.FullEvery, 0)
	r.oneOf("backup/format", b.Format, "tar.zst", "tar.gz", "zip")
	r.oneOf("backup/tool", b.Tool, "own", "mysqldump")
	r.oneOf("backup/profile", b.Profile, "own", "botble", "both")
	r.oneOf("backup/verify", b.Verify, "restore", "read", "off")
	r.oneOf("backup/log", b.Log, "auto", "on", "off")
	r.atLeastFor("backup/log_every", b.LogEvery, 5*time.Second)
	r.atLeast("backup/keep", b.Keep, 1)
	r.atLeast("backup/weekly", b.Weekly, 0)
	r.atLeast("backup/monthly", b.Monthly, 0)
	r.atLeastFor("backup/min_age", b.MinAge, 0)
	b.checkPlaces(r)
	r.atLeastFor("backup/min_interval", b.MinInterval, 0)
	r.atLeastFor("backup/stall", b.Stall, time.Second)
	r.oneOf("backup/notify", b.Notify, "failure", "always")
	r.atLeastFor("backup/verify_budget", b.Budget, time.Second)
	r.atLeastFor("backup/alert_after", b.Alert, 0)
	r.atLeastFor("backup/alert_unverified", b.Unverified, 0)
	for _, key := range b.Age {
		if !strings.HasPrefix(key, "age1") && !strings.HasPrefix(key, "ssh-") {
			r.add("backup/age_recipients", "%.12q… is no age recipient: they begin with age1 or ssh-", key)
		}
	}
	for _, key := range b.TrustedKeys {
		if !strings.HasPrefix(key, "ed25519:") {
			r.add("backup/trusted_keys", "%.20q is no public key: cmsjobs backup key prints one (ed25519:…)", key)
		}
	}
	for path, dsn := range map[string]DSN{"backup/verify_dsn": b.VerifyDSN, "backup/log_dsn": b.LogDSN} {
		if dsn == "" {
			continue
		}
		if _, err := dsn.Driver(); err != nil {
			r.add(path, "%v", err)
		}
	}
}

// leastBandwidth keeps the pauses of a limited connection far below what ends it.
const leastBandwidth = 64 << 10

func (b Backup) checkPlaces(r *report) {
	for name, p := range b.Places {
		path := "backup" + slash + "places" + slash + name + slash
		if !slices.Contains(b.To, name) {
			r.add("backup/places", "no backups go to %q: backup.to names %s", name, strings.Join(b.To, ", "))
		}
		r.atLeast(path+"keep", p.Keep, 0)
		r.atLeast(path+"weekly", p.Weekly, 0)
		r.atLeast(path+"monthly", p.Monthly, 0)
		r.atLeastFor(path+"min_age", p.MinAge, 0)
		switch {
		case p.Bandwidth == 0:
		case name != "s3" && name != "sftp":
			r.add(path+"bandwidth", "it is for s3 and sftp; backup.throttle limits what is read here")
		case p.Bandwidth < leastBandwidth:
			r.add(path+"bandwidth", "it is %d bytes a second: with less than %d, connections end", p.Bandwidth,
				int64(leastBandwidth))
		}
	}
}
