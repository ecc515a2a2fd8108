package webhook

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Deliver is the type webhook.deliver: 6 attempts, 5 s to 6 h apart.
var Deliver = jobs.Kind[DeliverPayload]{
	Name: "webhook.deliver",
	Policy: jobs.Policy{
		MaxAttempts: 6,
		Timeout:     time.Minute,
		Backoff:     jobs.Steps(5*time.Second, 5*time.Minute, 30*time.Minute, 2*time.Hour, 6*time.Hour),
	},
}

// Events that the service itself publishes. Anybody may publish others.
const (
	JobFailed        = "job.failed"
	SitemapUpdated   = "sitemap.updated"
	BackupCompleted  = "backup.completed"
	ContentPublished = "content.published"
	ConditionBegan   = "condition.began"
	ConditionEnded   = "condition.ended"
	Test             = "webhook.test"
)

// Breaker holds jobs back while a host is out.
type Breaker interface {
	// Allow returns an error marked by jobs.RetryAfter while it is out.
	Allow(ctx context.Context, dependency string) error
	// Record tells how a use ended; nil is success.
	Record(ctx context.Context, dependency string, err error) error
}

// Orders is the outbox: what deliveries say lies there, and the jobs name it.
type Orders interface {
	jobs.OrderBook
	// Give writes the orders of jobs and returns the jobs that name them.
	Give(ctx context.Context, registry *jobs.Registry, list ...jobs.Spec) ([]jobs.Spec, error)
}

// Config is what a Handler needs.
type Config struct {
	// DB holds cmsjobs_webhooks and cmsjobs_webhook_deliveries. Required.
	DB *sqlx.DB
	// Client must refuse private addresses (outbound.New). Required.
	Client *http.Client
	// AllowHTTP lets subscriptions be unencrypted; the client must allow it too.
	AllowHTTP bool
	// DefaultSecret signs deliveries to a plain url; "" leaves them unsigned.
	DefaultSecret string
	// MaxAge ends deliveries that a host puts off for ever; 3 days.
	MaxAge time.Duration
	// Breaker may be nil: then nothing is held back.
	Breaker Breaker
	// Enqueue is used by Redeliver and SendTest.
	Enqueue jobs.Enqueuer
	// Orders keeps what deliveries say. Required where jobs run.
	Orders Orders
	// Rows lets rows of the queue carry deliveries themselves: any program that
	// writes rows can then send signed events that a subscription wants.
	Rows bool
	// Now and Logger are required.
	Now    func() time.Time
	Logger *slog.Logger
}

// Handler delivers webhooks and keeps subscriptions. It is safe for
// concurrent use.
type Handler struct {
	c        Config
	registry *jobs.Registry // that Register filled
}

// New checks c and returns a Handler.
func New(c Config) (*Handler, error) {
	if c.DB == nil || c.Client == nil || c.Orders == nil || c.Now == nil || c.Logger == nil {
		return nil, errors.New("webhook: DB, Client, Orders, Now and Logger are required")
	}
	if c.DefaultSecret != "" {
		if _, err := keyOf(c.DefaultSecret); err != nil {
			return nil, err
		}
	}
	if c.MaxAge <= 0 {
		c.MaxAge = 72 * time.Hour
	}
	return &Handler{c: c}, nil
}

// Register adds webhook.deliver.
func (h *Handler) Register(r *jobs.Registry) {
	h.registry = r
	jobs.HandleInternal(r, jobs.Internal{Book: h.c.Orders, Maker: jobs.Service, Rows: h.c.Rows}, Deliver, h.deliver)
}
