package cms

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/cms/laravel"
)

// Site is one CMS: its database and, where it is known, its folder.
type Site struct {
	// DB is the CMS's database. Statements are written with ? and rebound.
	DB *sqlx.DB
	// Prefix is put before the names of the CMS's tables (DB_PREFIX).
	Prefix string
	// Jobs is the name of the jobs table without Prefix; "" is "jobs".
	Jobs string
	// Root is the CMS's folder (with .env, public, storage); "" when only its
	// database is known.
	Root string
	// Env is the CMS's .env; empty when there is none.
	Env Env
	// FallbackZone is used where the CMS's settings name no zone; nil is UTC.
	FallbackZone *time.Location
}

var tableName = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)

// Table is the full, safe name of one of the CMS's tables. It panics on a name
// that is no identifier: names come from code or from checked configuration.
func (s *Site) Table(name string) string {
	full := s.Prefix + name
	if !tableName.MatchString(full) {
		panic(fmt.Sprintf("cms: %q is not a table name", full))
	}
	return full
}

// JobsTable is the full, safe name of the CMS's jobs table.
func (s *Site) JobsTable() string { return s.Table(cmp.Or(s.Jobs, "jobs")) }

// Public is the folder that the web server serves, "" when Root is unknown: "public",
// or the root itself where only that has the application's index.php (October, Winter).
func (s *Site) Public() string {
	if s.Root != "" && !s.has("public") && s.has("index.php") {
		return s.Root
	}
	return s.under("public")
}

// Storage is Laravel's storage folder, "" when Root is unknown.
func (s *Site) Storage() string { return s.under("storage") }

func (s *Site) under(name string) string {
	if s.Root == "" {
		return ""
	}
	return filepath.Join(s.Root, name)
}

// CacheStore is where the CMS keeps cached entries: the store that is named, or
// the CMS's own default where name is "". It is read each time, as an
// administrator may change the files.
func (s *Site) CacheStore(name string) (laravel.CacheStore, error) {
	c, err := laravel.Open(s.Root, s.Env, "cache", "database")
	if err != nil {
		return laravel.CacheStore{}, err
	}
	if name != "" {
		return c.CacheStoreNamed(name), nil
	}
	return c.CacheStore(), nil
}

// URL is the site's address without a slash at the end: FORCE_ROOT_URL, else
// APP_URL, with FORCE_SCHEMA's scheme. "" when the .env names none.
func (s *Site) URL() string { return s.Env.siteURL() }

// Zone is the zone of the CMS's wall-clock times: the setting time_zone, else
// FallbackZone, else UTC.
func (s *Site) Zone(ctx context.Context) (*time.Location, error) {
	settings, err := s.Settings(ctx)
	if err != nil {
		return nil, err
	}
	return settings.zone(s.FallbackZone)
}
