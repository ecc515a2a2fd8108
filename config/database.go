package config

import (
	"errors"
	"regexp"
	"strings"
	"time"
)

// Database says where the CMS's tables and our own are.
type Database struct {
	DSN    DSN    `koanf:"dsn"`
	OwnDSN DSN    `koanf:"own_dsn"`
	Prefix string `koanf:"prefix"`
	// JobsTable is the name of the jobs table, without Prefix.
	JobsTable string `koanf:"jobs_table"`
	// Layout of the jobs table where we have to make one: stock or extended.
	Layout string `koanf:"layout"`
	// Connection is what failed_jobs calls this queue connection.
	Connection string `koanf:"connection"`
	MaxOpen    int    `koanf:"max_open"`
	Migrate    bool   `koanf:"migrate"`
	// StartWait is how long run and work wait at their start for a database that
	// does not answer.
	StartWait time.Duration `koanf:"start_wait"`
}

func defaultDatabase() Database {
	return Database{JobsTable: "jobs", Layout: "stock", Connection: "database", MaxOpen: 20,
		Migrate: true, StartWait: time.Minute}
}

var (
	prefixForm = regexp.MustCompile(`^[A-Za-z0-9_]{0,32}$`)
	tableForm  = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)
)

func (d Database) check(r *report) {
	for _, at := range []struct {
		path string
		dsn  DSN
	}{{"database/dsn", d.DSN}, {"database/own_dsn", d.OwnDSN}} {
		if at.dsn == "" {
			continue
		}
		if _, err := at.dsn.Driver(); err != nil {
			r.add(at.path, "%v", err)
		}
	}
	if !prefixForm.MatchString(d.Prefix) {
		r.add("database/prefix", "%q is no table prefix: letters, digits and _ only, at most 32", d.Prefix)
	}
	if !tableForm.MatchString(d.JobsTable) || d.JobsTable == "failed_jobs" {
		r.add("database/jobs_table", "%q is no name of a jobs table", d.JobsTable)
	}
	r.oneOf("database/layout", d.Layout, "stock", "extended")
	r.between("database/max_open", d.MaxOpen, 2, 1000)
	r.atLeastFor("database/start_wait", d.StartWait, 0)
	if d.Connection == "" {
		r.add("database/connection", "it must have a name, usually database")
	}
}

// Driver is the name of the database/sql driver that a DSN is for: mysql, pgx
// or sqlite. What stands in the rest of it is the store's to read.
func (d DSN) Driver() (string, error) {
	text := strings.TrimSpace(string(d))
	switch scheme, rest, _ := strings.Cut(text, ":"); scheme {
	case "postgres", "postgresql", "pgsql":
		return "pgx", nil
	case "sqlite", "file":
		if rest != "" {
			return "sqlite", nil
		}
	case "mysql", "mariadb":
		if strings.HasPrefix(rest, "//") {
			return "mysql", nil
		}
	}
	if at := strings.LastIndex(text, "@"); at > 0 && strings.Contains(text[at:], "/") {
		return "mysql", nil // go-sql-driver's own form
	}
	return "", errors.New("it is no address of a database that we know: write mysql://user:password@host:3306/name, " +
		"postgres://user:password@host/name or sqlite:/path/to/file.sqlite")
}

// SQLiteFile is the file that a DSN for SQLite names; ok is false for another
// database's.
func (d DSN) SQLiteFile() (path string, ok bool) {
	if driver, err := d.Driver(); err != nil || driver != "sqlite" {
		return "", false
	}
	_, path, _ = strings.Cut(strings.TrimSpace(string(d)), ":")
	path, _, _ = strings.Cut(strings.TrimPrefix(path, "//"), "?")
	return path, true
}
