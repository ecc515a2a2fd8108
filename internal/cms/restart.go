package cms

import (
	"context"
	"crypto/sha1"
	"database/sql"

	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// restartKey is where "php artisan queue:restart" leaves the moment in the
// CMS's cache.
const restartKey = "illuminate:queue:restart"

// QueueRestartedAt is when PHP's workers were last told to restart, from the
// CMS's file or database cache; the zero time when never, or when its cache is
// elsewhere. prefix is the cache's own, where the configuration names it; else
// it is made as the CMS makes it.
func (s *Site) QueueRestartedAt(ctx context.Context, prefix string) (time.Time, error) {
	switch s.Env.String("CACHE_STORE", s.Env.String("CACHE_DRIVER", "file")) {
	case "file":
		return s.restartInFile()
	case "database":
		return s.restartInTable(ctx, prefix)
	}
	return time.Time{}, nil
}

// restartInFile reads the entry of Laravel's file store, whose keys have no
// prefix.
func (s *Site) restartInFile() (time.Time, error) {
	if s.Root == "" {
		return time.Time{}, nil
	}
	sum := sha1.Sum([]byte(restartKey))
	name := fmt.Sprintf("%x", sum)
	root, err := os.OpenRoot(s.Storage())
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("looking for PHP's queue:restart: %w", err)
	}
	defer root.Close()
	data, err := root.ReadFile(filepath.Join("framework", "cache", "data", name[:2], name[2:4], name))
	if errors.Is(err, fs.ErrNotExist) || len(data) > 100 || err == nil && len(data) < 10 {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("looking for PHP's queue:restart: %w", err)
	}
	return restartMoment(string(data[10:])), nil // ten digits of expiry come first
}

// restartInTable reads the entry of the database store.
func (s *Site) restartInTable(ctx context.Context, prefix string) (time.Time, error) {
	name := strings.ToLower(s.Env.String("APP_NAME", "laravel"))
	slug := func(dash string) string {
		return strings.Join(strings.Fields(strings.NewReplacer("-", " ", "_", " ").Replace(name)), dash)
	}
	prefixes := []any{prefix + restartKey, s.Env["CACHE_PREFIX"] + restartKey, slug("-") + "-cache-" + restartKey, slug("_") + "_cache_" + restartKey}
	var value string
	query := fmt.Sprintf("SELECT value FROM %s WHERE %s IN (?, ?, ?, ?)", s.quote(s.Table("cache")), s.quote("key"))
	err := s.DB.GetContext(ctx, &value, s.DB.Rebind(query), prefixes...)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, nil
	}
	if err != nil {
		if there, look := s.HasTable(ctx, "cache"); look == nil && !there {
			return time.Time{}, nil
		}
		return time.Time{}, fmt.Errorf("looking for PHP's queue:restart: %w", err)
	}
	return restartMoment(value), nil
}

// restartMoment reads PHP's serialised number of seconds, i:1700000000;
func restartMoment(serialised string) time.Time {
	text, ok := strings.CutPrefix(strings.TrimSpace(serialised), "i:")
	seconds, err := strconv.ParseInt(strings.TrimSuffix(text, ";"), 10, 64)
	if !ok || err != nil || seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}
