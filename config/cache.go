package config

import "time"

// Cache says which of the CMS's caches the cache jobs clear. What is empty is
// as the CMS's own config/cache.php, config/database.php and .env have it.
type Cache struct {
	Driver string `koanf:"driver"` // file, database, redis, none
	Prefix string `koanf:"prefix"`
	Redis  Redis  `koanf:"redis"`
}

// Redis is the server that the CMS caches in.
type Redis struct {
	Address  string `koanf:"address"`
	Username string `koanf:"username"`
	Password Secret `koanf:"password"`
	DB       int    `koanf:"db"`
	// Own says that the database holds nothing but the cache, so that it may
	// be emptied as a whole.
	Own bool `koanf:"own"`
}

func defaultCache() Cache {
	return Cache{Redis: Redis{DB: 1}}
}

func (c Cache) check(r *report) {
	r.oneOf("cache/driver", c.Driver, "", "file", "database", "redis", "none")
	r.address("cache/redis/address", c.Redis.Address)
	r.between("cache/redis/db", c.Redis.DB, 0, 1_000_000)
}

// Logs says what logs.cleanup removes. Things that the CMS never prunes are
// kept unless a length of time is named here.
type Logs struct {
	Keep     time.Duration `koanf:"keep"`
	MaxSize  Size          `koanf:"max_size"`
	Sessions time.Duration `koanf:"sessions"`
	Mails    time.Duration `koanf:"email_logs"`
	Revision time.Duration `koanf:"revisions"`
	Members  time.Duration `koanf:"member_activity"`
}

func defaultLogs() Logs {
	return Logs{Keep: 14 * day, MaxSize: 100 << 20}
}

func (l Logs) check(r *report) {
	for path, d := range map[string]time.Duration{"keep": l.Keep, "sessions": l.Sessions,
		"email_logs": l.Mails, "revisions": l.Revision, "member_activity": l.Members} {
		r.atLeastFor("logs/"+path, d, 0)
	}
}
