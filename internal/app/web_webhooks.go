package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/handlers/webhook"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/webhooks"
)

// WebWebhooks shows and changes subscriptions.
type WebWebhooks struct{ Handler *webhook.Handler }

func (w WebWebhooks) Webhooks(ctx context.Context) ([]webhooks.Webhook, error) {
	list, err := w.Handler.Subscriptions(ctx)
	out := make([]webhooks.Webhook, 0, len(list))
	for _, s := range list {
		out = append(out, webhookView(s))
	}
	return out, err
}

func webhookView(s webhook.Subscription) webhooks.Webhook {
	note := s.Name
	if s.Reason != "" {
		note += " (" + s.Reason + ")"
	}
	return webhooks.Webhook{ID: strconv.FormatInt(s.ID, 10), URL: s.URL, Events: s.Events,
		Enabled: s.Status == webhook.Active, Note: note}
}

// number reads the id of a subscription or a delivery.
func number(id string) (int64, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number of a webhook: %w", id, jobs.ErrNotFound)
	}
	return n, nil
}

func notThere(err error) error {
	if errors.Is(err, webhook.ErrNoSubscription) || errors.Is(err, webhook.ErrNoDelivery) {
		return errors.Join(jobs.ErrNotFound, err)
	}
	return err
}

// SaveWebhook adds one, or switches one on or off. Its address and events stay
// what they are: anyone who wants others makes a new one, with a new secret.
func (w WebWebhooks) SaveWebhook(ctx context.Context, x webhooks.Webhook) (webhooks.Webhook, error) {
	if x.ID == "" {
		events := x.Events
		if len(events) == 0 {
			events = []string{"*"}
		}
		s, secret, err := w.Handler.Create(ctx, x.Note, x.URL, events)
		if err != nil {
			return webhooks.Webhook{}, err
		}
		view := webhookView(s)
		view.Secret = secret
		return view, nil
	}
	id, err := number(x.ID)
	if err != nil {
		return webhooks.Webhook{}, err
	}
	was, err := w.subscription(ctx, id)
	if err != nil {
		return webhooks.Webhook{}, err
	}
	if x.URL != "" && x.URL != was.URL || len(x.Events) > 0 && !slices.Equal(x.Events, was.Events) {
		return webhooks.Webhook{}, fmt.Errorf("the address and the events of a webhook cannot be changed; add "+
			"another one and delete this: %w", jobs.ErrConflict)
	}
	if x.Enabled {
		err = w.Handler.Enable(ctx, id)
	} else {
		err = w.Handler.Disable(ctx, id, "switched off by hand")
	}
	if err != nil {
		return webhooks.Webhook{}, notThere(err)
	}
	was, err = w.subscription(ctx, id)
	return webhookView(was), err
}

func (w WebWebhooks) subscription(ctx context.Context, id int64) (webhook.Subscription, error) {
	list, err := w.Handler.Subscriptions(ctx)
	if err != nil {
		return webhook.Subscription{}, err
	}
	at := slices.IndexFunc(list, func(s webhook.Subscription) bool { return s.ID == id })
	if at < 0 {
		return webhook.Subscription{}, notThere(webhook.ErrNoSubscription)
	}
	return list[at], nil
}

func (w WebWebhooks) DeleteWebhook(ctx context.Context, id string) error {
	n, err := number(id)
	if err != nil {
		return err
	}
	return notThere(w.Handler.Remove(ctx, n))
}

// requestShown is how much of a request the list of deliveries shows, in
// characters.
const requestShown = 2000

func (w WebWebhooks) Deliveries(ctx context.Context, id string, p jobs.Page) (jobs.List[webhooks.Delivery], error) {
	var n int64
	var err error
	if id != "" {
		if n, err = number(id); err != nil {
			return jobs.List[webhooks.Delivery]{}, err
		}
	}
	list, err := w.Handler.Deliveries(ctx, n, p)
	out := jobs.List[webhooks.Delivery]{Total: list.Total, Next: list.Next}
	for _, d := range list.Items {
		answer := d.Answer
		if d.Error != "" {
			answer = d.Error
		}
		out.Items = append(out.Items, webhooks.Delivery{ID: strconv.FormatInt(d.ID, 10),
			Webhook: strconv.FormatInt(d.Subscription, 10), Event: d.Event, At: d.At, Status: d.Status, Answer: answer,
			Request: display.Short(d.Request, requestShown), Attempt: d.Attempt})
	}
	return out, err
}

func (w WebWebhooks) Redeliver(ctx context.Context, delivery string) (jobs.Receipt, error) {
	n, err := number(delivery)
	if err != nil {
		return jobs.Receipt{}, err
	}
	receipt, err := w.Handler.Redeliver(ctx, n)
	return receipt, notThere(err)
}
