package cms

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"
)

// CacheTable writes text into the CMS's database cache in Laravel's form, so
// that PHP reads it with Cache::store('database')->get($key).
type CacheTable struct {
	Site *Site
	// Prefix is the store's own (CACHE_PREFIX), which goes before each key.
	Prefix string
}

// CacheEntry is one key and its text.
type CacheEntry struct{ Key, Text string }

// maxCached is what a MEDIUMTEXT holds, with space for the serialised form.
const maxCached = 16<<20 - 64

// cacheForever is Laravel's "forever": ten years.
const cacheForever = 10 * 365 * 24 * time.Hour

// Replace puts entries in place of all whose key begins with group, in one
// transaction: readers see the old ones or the new ones. It returns the keys
// that are no longer there. group must not be empty.
func (c CacheTable) Replace(ctx context.Context, group string, now time.Time, entries iter.Seq2[CacheEntry, error]) (
	removed []string, err error) {
	old, err := c.Keys(ctx, group)
	if err != nil {
		return nil, err
	}
	tx, err := c.Site.DB.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("writing the CMS's cache: %w", err)
	}
	removed, err = c.replace(ctx, tx, old, now.Add(cacheForever).Unix(), entries)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("writing the CMS's cache: %w", err), tx.Rollback())
	}
	return removed, tx.Commit()
}

func (c CacheTable) replace(ctx context.Context, tx *sql.Tx, old []string, expiration int64,
	entries iter.Seq2[CacheEntry, error]) ([]string, error) {
	db, quote := c.Site.DB, c.Site.quote
	remove := db.Rebind(fmt.Sprintf("DELETE FROM %s WHERE %s = ?", quote(c.Site.Table("cache")), quote("key")))
	insert := db.Rebind(fmt.Sprintf("INSERT INTO %s (%s, %s, %s) VALUES (?, ?, ?)", quote(c.Site.Table("cache")),
		quote("key"), quote("value"), quote("expiration")))
	fresh := map[string]bool{}
	for e, err := range entries {
		if err != nil {
			return nil, err
		}
		if len(e.Text) > maxCached {
			return nil, fmt.Errorf("%s has %d bytes, the cache table holds 16 MB", e.Key, len(e.Text))
		}
		fresh[e.Key] = true
		if _, err := tx.ExecContext(ctx, remove, c.Prefix+e.Key); err != nil {
			return nil, err
		}
		if _, err := tx.ExecContext(ctx, insert, c.Prefix+e.Key, "s:"+strconv.Itoa(len(e.Text))+`:"`+e.Text+`";`,
			expiration); err != nil {
			return nil, err
		}
	}
	var removed []string
	for _, key := range old {
		if fresh[key] {
			continue
		}
		if _, err := tx.ExecContext(ctx, remove, c.Prefix+key); err != nil {
			return nil, err
		}
		removed = append(removed, key)
	}
	return removed, nil
}

// Keys lists the keys that begin with group, without the prefix.
func (c CacheTable) Keys(ctx context.Context, group string) ([]string, error) {
	there, err := c.Site.HasTable(ctx, "cache")
	if err != nil {
		return nil, err
	}
	if !there {
		return nil,
			errors.New("the CMS has no table cache: run php artisan cache:table there, or choose another target")
	}
	like := strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(c.Prefix+group) + "%"
	query := fmt.Sprintf("SELECT %s FROM %s WHERE %s LIKE ? ESCAPE '!' ORDER BY 1", c.Site.quote("key"),
		c.Site.quote(c.Site.Table("cache")), c.Site.quote("key"))
	var keys []string
	if err := c.Site.DB.SelectContext(ctx, &keys, c.Site.DB.Rebind(query), like); err != nil {
		return nil, fmt.Errorf("reading the CMS's cache: %w", err)
	}
	list := keys[:0]
	for _, key := range keys {
		if name, ok := strings.CutPrefix(key, c.Prefix); ok && strings.HasPrefix(name, group) { // LIKE ignores case
			list = append(list, name)
		}
	}
	return list, nil
}

// Text reads a key back; false when it is not there or is no text.
func (c CacheTable) Text(ctx context.Context, key string) (string, bool, error) {
	var value string
	query := fmt.Sprintf("SELECT %s FROM %s WHERE %s = ?", c.Site.quote("value"), c.Site.quote(c.Site.Table("cache")),
		c.Site.quote("key"))
	err := c.Site.DB.GetContext(ctx, &value, c.Site.DB.Rebind(query), c.Prefix+key)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("reading the CMS's cache: %w", err)
	}
	length, rest, ok := strings.Cut(strings.TrimPrefix(value, "s:"), ":")
	n, err := strconv.Atoi(length)
	if !ok || err != nil || n < 0 || len(rest) != n+3 {
		return "", false, nil
	}
	return rest[1 : 1+n], true, nil
}
