package cms

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Settings are the rows of the CMS's settings table at one moment. Values are
// strings there; a missing row means the CMS's default, which the caller
// names. Read them once a job and never keep them longer: an administrator's
// change is to be seen by the next job.
type Settings map[string]string

// Settings reads the whole table (a few hundred short rows). A database
// without the table has no settings, which is no error.
func (s *Site) Settings(ctx context.Context) (Settings, error) {
	var rows []struct {
		Key   string         `db:"key"`
		Value sql.NullString `db:"value"`
	}
	quote := s.quote
	query := fmt.Sprintf("SELECT %s, %s FROM %s", quote("key"), quote("value"), quote(s.Table("settings")))
	if err := s.DB.SelectContext(ctx, &rows, query); err != nil {
		// Asked only now: the catalogue of columns is far slower than the table.
		// Another application's "settings" (spatie/laravel-settings) is no table of the CMS.
		if columns, lookup := s.Columns(ctx, "settings"); lookup == nil && (columns["key"] == "" ||
			columns["value"] == "") {
			return Settings{}, nil
		}
		return nil, fmt.Errorf("reading the CMS's settings: %w", err)
	}
	settings := make(Settings, len(rows))
	for _, r := range rows {
		settings[r.Key] = r.Value.String
	}
	return settings, nil
}

// String is the value of key, or fallback where there is no row or it is empty.
func (s Settings) String(key, fallback string) string {
	if v := s[key]; v != "" {
		return v
	}
	return fallback
}

// Bool reads '1' and '0' (and words); fallback where there is no row.
func (s Settings) Bool(key string, fallback bool) bool {
	v, there := s[key]
	if !there {
		return fallback
	}
	switch strings.ToLower(strings.TrimSpace(v)) {
	case "1", "true", "on", "yes":
		return true
	}
	return false
}

// Int reads a number; fallback where there is none.
func (s Settings) Int(key string, fallback int) int {
	n, err := strconv.Atoi(strings.TrimSpace(s[key]))
	if err != nil {
		return fallback
	}
	return n
}

// List reads a JSON list of strings; a value that is no JSON is a list of one.
func (s Settings) List(key string) []string {
	v := strings.TrimSpace(s[key])
	if v == "" {
		return nil
	}
	var list []string
	if json.Unmarshal([]byte(v), &list) == nil {
		return list
	}
	return []string{v}
}

func (s Settings) zone(fallback *time.Location) (*time.Location, error) {
	name := s.String("time_zone", "")
	if name == "" {
		if fallback == nil {
			fallback = time.UTC
		}
		return fallback, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("the CMS's setting time_zone is %q, which is no zone: %w", name, err)
	}
	return zone, nil
}
