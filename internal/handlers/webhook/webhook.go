package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
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
	ContentChanged   = "content.changed"
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

// DeliverPayload says what to tell whom: a Subscription, or any URL.
type DeliverPayload struct {
	Subscription int64           `json:"subscription,omitempty" example:"1"`
	URL          string          `json:"url,omitempty"`
	Event        string          `json:"event" required:"true" example:"order.paid"`
	Data         json.RawMessage `json:"data,omitempty"`
	// ID names the message; the job's uuid when empty. A redelivery has the ID
	// of the first.
	ID string `json:"id,omitempty"`
	// At is when it happened, RFC 3339; the job's enqueuing when empty.
	At string `json:"at,omitempty"`
}

var (
	eventName   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,60}(\.[A-Za-z0-9_-]{1,60}){0,4}$`)
	eventFilter = regexp.MustCompile(`^(\*|[A-Za-z0-9_-]{1,60}(\.[A-Za-z0-9_-]{1,60}){0,4}(\.\*)?)$`)
)

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

// Validate finds what no repeating would fix.
func (p *DeliverPayload) Validate() error {
	if (p.Subscription == 0) == (p.URL == "") {
		return phrase.Errorf("a webhook needs either subscription or url")
	}
	if p.URL != "" {
		if err := checkURL(p.URL, true); err != nil {
			return err
		}
	}
	if len(p.ID) > 191 || strings.ContainsFunc(p.ID, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return phrase.Errorf("a webhook's id is printable ASCII of at most 191 bytes")
	}
	return checkEvent(p.Event)
}

func checkEvent(name string) error {
	if len(name) > 191 || !eventName.MatchString(name) {
		return phrase.Errorf("%.60q is not the name of an event, such as content.published", name)
	}
	return nil
}

func checkURL(address string, allowHTTP bool) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || len(address) > 2000 || u.Host == "":
		return phrase.Errorf("the webhook's url is not an address like https://example.com/hook")
	case u.User != nil:
		return phrase.Errorf("the webhook's url holds a user name: use the signature instead")
	case u.Scheme == "https" || (u.Scheme == "http" && allowHTTP):
		return nil
	}
	return phrase.Errorf("the webhook's url must begin with https://")
}

// cut makes foreign text fit for a column and a page; lines and tabs of bodies
// stay.
func cut(text string, limit int) string { return jobs.PlainText(text, limit, '\n', '\t') }
