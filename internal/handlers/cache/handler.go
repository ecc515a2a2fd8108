package cache

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cmsjobs/cmsjobs/internal/cms"
)

// Config is what the handlers need. Site and Now are required.
type Config struct {
	Site    *cms.Site
	Options Options
	// Redis is the server of the CMS's cache; nil reads it from the CMS's
	// config/database.php and .env. The connection is closed after each job.
	Redis *redis.Options
	// CleanQueue cleans the queue's own tables and says what it did, or with
	// dryRun would do. Without it queue.clean is not registered.
	CleanQueue func(ctx context.Context, dryRun bool) (any, error)
	Now        func() time.Time
	Logger     *slog.Logger
}

// Options are what an owner may set. Zero values mean the defaults.
type Options struct {
	// Store is file, database or redis; "" is the CMS's default store.
	Store string
	// Prefix is put before keys in the database and in Redis; "" reads it as
	// the CMS does.
	Prefix string
	// RedisIsOurs says that the Redis database holds the CMS's cache and
	// nothing else: then FLUSHDB empties it.
	RedisIsOurs bool
	// Budget is how long one run removes before it leaves the rest to the next:
	// 4 minutes.
	Budget time.Duration
	// LogDays to keep log files: 14.
	LogDays int
	// RotateAbove is the size in bytes from which laravel.log is put aside and
	// compressed: 64 MiB; −1 never.
	RotateAbove int64
	// Sessions removes expired rows of sessions. Off by default, as the next
	// three: 0 days keeps for ever.
	Sessions           bool
	EmailLogDays       int
	RevisionDays       int
	MemberActivityDays int
}

func (o Options) withDefaults() Options {
	if o.Budget <= 0 {
		o.Budget = 4 * time.Minute
	}
	if o.LogDays <= 0 {
		o.LogDays = 14
	}
	if o.RotateAbove == 0 {
		o.RotateAbove = 64 << 20
	}
	return o
}

// Handler runs the package's types.
type Handler struct {
	site       *cms.Site
	options    Options
	redis      *redis.Options
	cleanQueue func(context.Context, bool) (any, error)
	now        func() time.Time
	logger     *slog.Logger
}

// New returns the handlers.
func New(c Config) *Handler {
	h := &Handler{site: c.Site, options: c.Options.withDefaults(), redis: c.Redis, cleanQueue: c.CleanQueue,
		now: c.Now, logger: c.Logger}
	if h.logger == nil {
		h.logger = slog.New(slog.DiscardHandler)
	}
	return h
}
