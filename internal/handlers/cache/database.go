package cache

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

type databaseStore struct{ h *Handler }

func (s databaseStore) name() string { return "database" }

var plainName = regexp.MustCompile(`^[A-Za-z0-9_]{1,50}$`)

// tables are the store's own and the one of its locks (config/cache.php).
func (s databaseStore) tables() (entries, locks string, err error) {
	env := s.h.site.Env
	entries, locks = env.String("DB_CACHE_TABLE", "cache"), env.String("DB_CACHE_LOCK_TABLE", "cache_locks")
	if !plainName.MatchString(entries) || !plainName.MatchString(locks) {
		return "", "", fmt.Errorf("the CMS's cache tables %q and %q are no table names", entries, locks)
	}
	return entries, locks, nil
}

// flush removes the site's entries, not another site's that shares the table.
// Locks stay: somebody may hold one.
func (s databaseStore) flush(ctx context.Context, r *Report) error {
	return s.forgetPrefixes(ctx, []string{""}, r)
}

// expired removes what is over, whoever's it is. Expired locks are free.
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
	for _, prefix := range s.h.prefixes() {
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
	for _, site := range s.h.prefixes() {
		for _, prefix := range prefixes {
			p := pruning{table: table, key: "key", where: s.h.quote("key") + " LIKE ? ESCAPE '!'", args: []any{like(site + prefix)}}
			if err := s.h.prune(ctx, p, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// like is the pattern of what begins with prefix.
func like(prefix string) string {
	return strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(prefix) + "%"
}
