package cache

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

type redisStore struct{ h *Handler }

func (s redisStore) name() string { return "redis" }

// flush removes the site's keys: by FLUSHDB where the database is the cache's
// own, else by their prefix. Sessions and queues may live beside them.
func (s redisStore) flush(ctx context.Context, r *Report) error {
	return s.with(ctx, func(c redis.UniversalClient) error {
		if !s.h.options.RedisIsOurs {
			return s.scan(ctx, c, []string{""}, r)
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

// expired has nothing to do: Redis removes what is over itself.
func (s redisStore) expired(_ context.Context, r *Report) error {
	r.note("Redis removes expired entries itself")
	return nil
}

func (s redisStore) forget(ctx context.Context, keys []string, r *Report) error {
	return s.with(ctx, func(c redis.UniversalClient) error {
		for _, prefix := range s.prefixes() {
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
	return s.with(ctx, func(c redis.UniversalClient) error { return s.scan(ctx, c, prefixes, r) })
}

// prefixes are REDIS_PREFIX followed by the cache's own.
func (s redisStore) prefixes() []string {
	if s.h.options.Prefix != "" {
		return []string{s.h.options.Prefix}
	}
	var all []string
	for _, outer := range prefixes(s.h.site, "REDIS_PREFIX", "database", "config/database.php") {
		for _, inner := range s.h.prefixes() {
			all = append(all, outer+inner)
		}
	}
	return all
}

var errNoPrefix = errors.New("the CMS gives its keys in Redis no prefix, so they cannot be told from others: say that the database is the cache's own, or set CACHE_PREFIX")

// scan unlinks what begins with the site's prefix and one of prefixes. SCAN
// and UNLINK do not hold up other clients, as KEYS and DEL would.
func (s redisStore) scan(ctx context.Context, c redis.UniversalClient, prefixes []string, r *Report) error {
	for _, site := range s.prefixes() {
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

func (s redisStore) scanOne(ctx context.Context, c redis.UniversalClient, prefix string, r *Report) error {
	seen := map[string]bool{} // a dry-run must not count a key twice that SCAN returns twice
	for cursor := uint64(0); ; {
		keys, next, err := c.Scan(ctx, cursor, glob(prefix), 1000).Result()
		if err != nil {
			return err
		}
		if r.DryRun {
			for _, key := range keys {
				if !seen[key] {
					seen[key] = true
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

func (s redisStore) with(ctx context.Context, do func(redis.UniversalClient) error) error {
	c, err := s.h.openRedis(ctx)
	if err != nil {
		return fmt.Errorf("opening the CMS's Redis: %w", err)
	}
	defer c.Close()
	if err := do(c); err != nil {
		return fmt.Errorf("the CMS's Redis: %w", err)
	}
	return nil
}

// dialRedis reads the "cache" connection as config/database.php does: REDIS_URL
// or its parts, database REDIS_CACHE_DB (1).
func (h *Handler) dialRedis(context.Context) (redis.UniversalClient, error) {
	env := h.site.Env
	database, err := strconv.Atoi(env.String("REDIS_CACHE_DB", "1"))
	if err != nil {
		return nil, fmt.Errorf("REDIS_CACHE_DB is no number: %w", err)
	}
	if url := env.String("REDIS_URL", ""); url != "" {
		o, err := redis.ParseURL(url)
		if err != nil {
			return nil, errors.New("REDIS_URL in the CMS's .env is no redis:// address") // the URL may hold a password
		}
		if !strings.Contains(strings.TrimPrefix(strings.TrimPrefix(url, "rediss://"), "redis://"), "/") {
			o.DB = database
		}
		return bounded(o), nil
	}
	o := &redis.Options{Network: "tcp", Username: env.String("REDIS_USERNAME", ""), Password: env.String("REDIS_PASSWORD", ""), DB: database}
	host := strings.TrimPrefix(env.String("REDIS_HOST", "127.0.0.1"), "unix://")
	if strings.HasPrefix(host, "/") {
		o.Network, o.Addr = "unix", host
	} else {
		o.Addr = net.JoinHostPort(strings.Trim(host, "[]"), env.String("REDIS_PORT", "6379"))
	}
	return bounded(o), nil
}
