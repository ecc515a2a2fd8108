package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"

	"github.com/cmsjobs/cmsjobs/internal/cms/laravel"
)

type redisStore struct {
	h *Handler
	laravel.CacheStore
}

func (s redisStore) name() string { return "redis" }

// flush removes the site's keys: by FLUSHDB where the database is the cache's
// own, else by their prefix. Sessions and queues may live beside them.
func (s redisStore) flush(ctx context.Context, r *Report) error {
	return s.with(func(c redis.UniversalClient) error {
		if !s.h.options.RedisIsOurs {
			return s.flushPrefixes(ctx, c, r)
		}
		n, err := c.DBSize(ctx).Result()
		if err != nil {
			return err
		}
		r.Keys += n
		if r.DryRun {
			return nil
		}
		return c.FlushDBAsync(ctx).Err()
	})
}

func (s redisStore) flushPrefixes(ctx context.Context, c redis.UniversalClient, r *Report) error {
	before := r.Keys
	if err := s.scan(ctx, c, []string{""}, r); err != nil || r.Keys > before {
		return err
	}
	n, err := c.DBSize(ctx).Result()
	if err != nil {
		return err
	}
	if n > 0 {
		nothing(s.CacheStore, n, "the Redis database", r)
	}
	return nil
}

// expired has nothing to do: Redis removes what is over itself.
func (s redisStore) expired(_ context.Context, r *Report) error {
	r.note("Redis removes expired entries itself")
	return nil
}

func (s redisStore) forget(ctx context.Context, keys []string, r *Report) error {
	return s.with(func(c redis.UniversalClient) error {
		for _, prefix := range s.Prefixes {
			full := make([]string, len(keys))
			for i, key := range keys {
				full[i] = prefix + key
			}
			if err := s.unlink(ctx, c, full, r); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s redisStore) forgetPrefixes(ctx context.Context, prefixes []string, r *Report) error {
	return s.with(func(c redis.UniversalClient) error { return s.scan(ctx, c, prefixes, r) })
}

var errNoPrefix = errors.New("the CMS gives its keys in Redis no prefix, so they cannot be distinguished from " +
	"others: say that the database is the cache's own, or set CACHE_PREFIX")

// scan unlinks what begins with the site's prefix and one of prefixes. SCAN
// and UNLINK do not hold up other clients, as KEYS and DEL would.
func (s redisStore) scan(ctx context.Context, c redis.UniversalClient, prefixes []string, r *Report) error {
	for _, site := range apart(s.Prefixes) {
		for _, prefix := range prefixes {
			if site+prefix == "" {
				return errNoPrefix
			}
			if err := s.scanOne(ctx, c, site+prefix, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxSeen bounds what a dry-run remembers: 16 MiB. Beyond it a key may count twice.
const maxSeen = 500_000

func (s redisStore) scanOne(ctx context.Context, c redis.UniversalClient, prefix string, r *Report) error {
	seen := map[uint64]bool{} // a dry-run must not count a key twice that SCAN returns twice
	for cursor := uint64(0); ; {
		keys, next, err := c.Scan(ctx, cursor, glob(prefix), 1000).Result()
		if err != nil {
			return err
		}
		if r.DryRun {
			for _, key := range keys {
				if sum := xxhash.Sum64String(key); !seen[sum] {
					if len(seen) < maxSeen {
						seen[sum] = true
					}
					r.Keys++
				}
			}
		} else if err := s.unlink(ctx, c, keys, r); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

func (s redisStore) unlink(ctx context.Context, c redis.UniversalClient, keys []string, r *Report) error {
	if len(keys) == 0 {
		return nil
	}
	count := c.Unlink
	if r.DryRun {
		count = c.Exists
	}
	n, err := count(ctx, keys...).Result()
	r.Keys += n
	return err
}

// glob is the pattern of what begins with prefix.
func glob(prefix string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(prefix) + "*"
}

func (s redisStore) with(do func(redis.UniversalClient) error) error {
	o := s.h.redis
	if o == nil {
		var err error
		if o, err = redisOptions(s.Redis); err != nil {
			return fmt.Errorf("opening the CMS's Redis: %w", err)
		}
	}
	c := bounded(o)
	defer c.Close()
	if err := do(c); err != nil {
		return fmt.Errorf("the CMS's Redis: %w", err)
	}
	return nil
}
