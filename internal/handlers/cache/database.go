package cache

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/cms/laravel"
)

type databaseStore struct {
	h *Handler
	laravel.CacheStore
}

func (s databaseStore) name() string { return "database" }

var plainName = regexp.MustCompile(`^[A-Za-z0-9_]{1,50}$`)

// tables are the store's own and the one of its locks (config/cache.php).
func (s databaseStore) tables() (entries, locks string, err error) {
	entries, locks = s.Table, s.LockTable
	if !plainName.MatchString(entries) || !plainName.MatchString(locks) {
		return "", "", fmt.Errorf("the CMS's cache tables %q and %q are no table names", entries, locks)
	}
	return entries, locks, nil
}

// flush removes the site's entries, not another site's that shares the table.
// Locks stay: somebody may hold one.
func (s databaseStore) flush(ctx context.Context, r *Report) error {
	table, _, err := s.tables()
	if err != nil {
		return err
	}
	if err := s.forgetPrefixes(ctx, []string{""}, r); err != nil || r.Rows[table] > 0 {
		return err
	}
	there, err := s.h.site.HasTable(ctx, table)
	if err != nil || !there {
		return err
	}
	var n int64
	if err := s.h.site.DB.GetContext(ctx, &n, "SELECT COUNT(*) FROM "+s.h.quote(s.h.site.Table(table))); err != nil {
		return counting(table, err)
	}
	if n > 0 {
		nothing(s.CacheStore, n, "the table "+table, r)
	}
	return nil
}

// forgetTags has nothing to do: this store has no tags.
func (s databaseStore) forgetTags(context.Context, []string, *Report) ([]string, error) {
	return nil, nil
}

// expired removes what is over, regardless of its owner. Expired locks are free.
func (s databaseStore) expired(ctx context.Context, r *Report) error {
	entries, locks, err := s.tables()
	if err != nil {
		return err
	}
	for _, table := range []string{entries, locks} {
		p := pruning{table: table, key: "key", where: "expiration <= ?", args: []any{s.h.now().Unix()}}
		if err := s.h.prune(ctx, p, r); err != nil {
			return err
		}
	}
	return nil
}

func (s databaseStore) forget(ctx context.Context, keys []string, r *Report) error {
	table, _, err := s.tables()
	if err != nil {
		return err
	}
	var full []string
	for _, prefix := range s.Prefixes {
		for _, key := range keys {
			full = append(full, prefix+key)
		}
	}
	return s.h.deleteKeys(ctx, pruning{table: table, key: "key"}, full, r)
}

func (s databaseStore) forgetPrefixes(ctx context.Context, prefixes []string, r *Report) error {
	table, _, err := s.tables()
	if err != nil {
		return err
	}
	for _, site := range s.Prefixes {
		before := r.Rows[table]
		for _, prefix := range prefixes {
			p := pruning{table: table, key: "key", where: s.h.quote("key") + " LIKE ? ESCAPE '!'", args: []any{
				like(site + prefix)}}
			if err := s.h.prune(ctx, p, r); err != nil {
				return err
			}
		}
		if r.Rows[table] > before { // where the prefix is a guess, the first that is there is the site's
			return nil
		}
	}
	return nil
}

// like is the pattern of what begins with prefix.
func like(prefix string) string {
	return strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(prefix) + "%"
}
