package laravel

import (
	"path"
	"slices"
	"strings"
)

// CacheStore is where an application's default cache store keeps entries.
type CacheStore struct {
	// Name is the store's in config/cache.php, Driver its kind: file, database,
	// redis or another of Laravel's.
	Name, Driver string
	// Prefixes may stand before a key. There is more than one only where the
	// configuration or Laravel's version could not be read: those that
	// Laravel's skeletons have had, the most likely first. The file store has
	// none.
	Prefixes []string
	// Known says that the prefix comes from the configuration.
	Known bool
	// Table and LockTable are those of the database store.
	Table, LockTable string
	// Dir is the folder of the file store, absolute where the application's is.
	Dir string
	// Redis is the server of the Redis store. Its prefix is in Prefixes.
	Redis RedisServer
	// ConnectionPrefixes are the parts of Prefixes that belong to the Redis
	// connection.
	ConnectionPrefixes []string
	// Major is Laravel's version, which decides how tags are kept in Redis: in
	// sets up to 9, in sorted sets since; 0 where it is unknown.
	Major int
}

// RedisServer is one connection of config/database.php.
type RedisServer struct {
	URL, Host, Port, Username, Password string
	Database                            string
}

// CacheStore reads the default store, from the files "cache" and "database",
// which Open must have been given, and from the .env where they do not tell.
func (c *Config) CacheStore() CacheStore {
	name := c.text("", "cache", "default")
	if name == "" {
		name = c.envOr("CACHE_STORE", c.envOr("CACHE_DRIVER", "file"))
	}
	return c.cacheStore(name)
}

// CacheStoreNamed is another store than the default one.
func (c *Config) CacheStoreNamed(name string) CacheStore { return c.cacheStore(name) }

func (c *Config) cacheStore(name string) CacheStore {
	at := func(fallback, key string) string { return c.text(fallback, "cache", "stores", name, key) }
	s := CacheStore{Name: name, Driver: at(name, "driver"), Major: c.Major}
	switch s.Driver {
	case "file":
		s.Dir = at(path.Join(c.dir, "storage/framework/cache/data"), "path")
		s.Known = true
		return s
	case "database":
		s.Table = at(c.envOr("DB_CACHE_TABLE", "cache"), "table")
		s.LockTable = at(c.envOr("DB_CACHE_LOCK_TABLE", s.Table+"_locks"), "lock_table")
	case "redis":
		s.Redis = c.redis(at("cache", "connection"))
	}
	s.Prefixes, s.Known = c.cachePrefixes(name)
	if s.Driver == "redis" {
		outer, known := c.redisConnectionPrefixes(at("cache", "connection"))
		s.Known = s.Known && known
		s.ConnectionPrefixes, s.Prefixes = outer, c.redisPrefixes(outer, s.Prefixes, s.Known)
	}
	return s
}

// cachePrefixes are the cache's own: the store's, else that of all stores.
func (c *Config) cachePrefixes(store string) (prefixes []string, known bool) {
	if own, err := c.Value("cache", "stores", store, "prefix"); err == nil && own != nil {
		return []string{toString(own)}, true
	}
	if all, err := c.Value("cache", "prefix"); err == nil {
		return []string{toString(all)}, true
	}
	if set, is := c.env["CACHE_PREFIX"]; is {
		return []string{set}, true
	}
	return c.guesses("_cache_", "-cache-", "_cache"), false
}

// redisPrefixes put the connection's prefix before the cache's. Up to Laravel
// 10 the Redis store puts a colon behind its prefix.
func (c *Config) redisPrefixes(outer, cache []string, known bool) []string {
	var all []string
	for _, o := range outer {
		for _, p := range cache {
			if c.Major < 11 && p != "" {
				all = append(all, o+p+":")
			}
			bare := strings.HasSuffix(p, "_cache")
			if c.Major > 10 || p == "" || c.Major == 0 && (!bare || known) {
				all = append(all, o+p)
			}
		}
	}
	return unique(all)
}

func (c *Config) redisConnectionPrefixes(connection string) (prefixes []string, known bool) {
	for _, keys := range [][]string{{"redis", connection, "prefix"}, {"redis", connection, "options", "prefix"}} {
		if own, err := c.Value("database", keys...); err == nil && own != nil {
			return []string{toString(own)}, true
		}
	}
	if all, err := c.Value("database", "redis", "options", "prefix"); err == nil {
		return []string{toString(all)}, true
	}
	if set, is := c.env["REDIS_PREFIX"]; is {
		return []string{set}, true
	}
	return c.guesses("_database_", "-database-"), false
}

func (c *Config) redis(connection string) RedisServer {
	at := func(fallback, key string) string { return c.text(fallback, "database", "redis", connection, key) }
	return RedisServer{
		URL:      at(c.envOr("REDIS_URL", ""), "url"),
		Host:     at(c.envOr("REDIS_HOST", "127.0.0.1"), "host"),
		Port:     at(c.envOr("REDIS_PORT", "6379"), "port"),
		Username: at(c.envOr("REDIS_USERNAME", ""), "username"),
		Password: at(c.envOr("REDIS_PASSWORD", ""), "password"),
		Database: at(c.envOr("REDIS_CACHE_DB", "1"), "database"),
	}
}

// guesses are the site's name and each ending, as the skeletons' prefixes have
// had them. An ending begins with what stands between the name's words.
func (c *Config) guesses(endings ...string) (all []string) {
	name, set := c.env["APP_NAME"]
	if !set {
		name = "laravel"
	}
	for _, leftFirst := range []bool{c.leftFirst, !c.leftFirst} {
		for _, ending := range endings {
			all = append(all, slug(name, ending[:1], leftFirst)+ending)
		}
	}
	return unique(all)
}

// envOr is a variable's value, or fallback where it is missing or empty.
func (c *Config) envOr(name, fallback string) string {
	if v := c.env[name]; v != "" {
		return v
	}
	return fallback
}

func unique(all []string) []string {
	var once []string
	for _, s := range all {
		if !slices.Contains(once, s) {
			once = append(once, s)
		}
	}
	return once
}
