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

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/cms/laravel"
)

// restartKey is where "php artisan queue:restart" leaves the moment in the
// CMS's cache.
const restartKey = "illuminate:queue:restart"

// QueueRestartedAt is when PHP's workers were last told to restart, from the
// CMS's file or database cache; the zero time when never, or when its cache is
// elsewhere. prefix is the cache's own, where the configuration names it; else
// it is made as the CMS makes it.
func (s *Site) QueueRestartedAt(ctx context.Context, prefix string) (time.Time, error) {
	store, err := s.CacheStore("")
	if err != nil {
		return time.Time{}, fmt.Errorf("looking for PHP's queue:restart: %w", err)
	}
	if prefix != "" {
		store.Prefixes = []string{prefix}
	}
	switch store.Driver {
	case "file":
		return s.restartInFile()
	case "database":
		return s.restartInTable(ctx, store)
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
func (s *Site) restartInTable(ctx context.Context, store laravel.CacheStore) (time.Time, error) {
	if !tableName.MatchString(s.Prefix + store.Table) {
		return time.Time{}, fmt.Errorf("the CMS's cache table %q is no table name", store.Table)
	}
	keys := make([]string, len(store.Prefixes))
	for i, prefix := range store.Prefixes {
		keys[i] = prefix + restartKey
	}
	query, args, err := sqlx.In(fmt.Sprintf("SELECT value FROM %s WHERE %s IN (?)", s.quote(s.Table(store.Table)),
		s.quote("key")), keys)
	if err != nil {
		return time.Time{}, fmt.Errorf("looking for PHP's queue:restart: %w", err)
	}
	var value string
	err = s.DB.GetContext(ctx, &value, s.DB.Rebind(query), args...)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, nil
	}
	if err != nil {
		if there, look := s.HasTable(ctx, store.Table); look == nil && !there {
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
