package webhooks

import (
	"context"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// Port shows and changes subscriptions to events. An id that is not there is an
// error that wraps jobs.ErrNotFound.
type Port interface {
	Webhooks(ctx context.Context) ([]Webhook, error)
	// SaveWebhook adds one (ID "") or changes it; the answer carries the ID
	// and, for a new one only, the secret.
	SaveWebhook(ctx context.Context, w Webhook) (Webhook, error)
	DeleteWebhook(ctx context.Context, id string) error
	Deliveries(ctx context.Context, webhook string, p jobs.Page) (jobs.List[Delivery], error)
	// Redeliver enqueues a delivery again, under its old message id.
	Redeliver(ctx context.Context, delivery string) (jobs.Receipt, error)
}

// Webhook is a subscription.
type Webhook struct {
	ID      string   `json:"id"`
	URL     string   `json:"url"`
	Events  []string `json:"events"` // empty means all
	Enabled bool     `json:"enabled"`
	Secret  string   `json:"secret,omitempty"` // only in the answer that made it
	Note    string   `json:"note,omitempty"`
}

// WebhookList is the answer of a list.
type WebhookList = ops.Items[Webhook]

// Delivery is one sending of an event.
type Delivery struct {
	ID      string    `json:"id"`
	Webhook string    `json:"webhook"`
	Event   string    `json:"event"`
	At      time.Time `json:"at"`
	Status  int       `json:"status"` // of HTTP; 0 when there was no answer
	Answer  string    `json:"answer,omitempty"`
	Request string    `json:"request,omitempty"` // what was sent, cut
	Attempt int       `json:"attempt"`
}

// deliveryType is what sending a delivery again makes run.
const deliveryType = "webhook.deliver"

type handlers struct{ port Port }
