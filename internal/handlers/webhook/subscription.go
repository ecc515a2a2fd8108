package webhook

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Status of a subscription.
type Status string

// The states.
const (
	Active   Status = "active"
	Disabled Status = "disabled"
)

// Subscription is one receiver.
type Subscription struct {
	ID   int64
	Name string
	URL  string
	// Events that it wants: names, "area.*", or "*" for all.
	Events []string
	Status Status
	// Reason why it is disabled.
	Reason               string
	CreatedAt, UpdatedAt time.Time
}

// keyed is a subscription with what signs for it. It stays in this package.
type keyed struct {
	Subscription
	secret, oldSecret string
	oldUntil          time.Time
}

// secrets that sign now: after a rotation, for a while, the old one too, so
// that a receiver can change over without losing a message.
func (s keyed) secrets(now time.Time) []string {
	if s.oldSecret != "" && now.Before(s.oldUntil) {
		return []string{s.secret, s.oldSecret}
	}
	return []string{s.secret}
}

// wants says whether an event is to be sent to it.
func (s Subscription) wants(event string) bool {
	for _, e := range s.Events {
		if area, all := strings.CutSuffix(e, "*"); e == event || (all && strings.HasPrefix(event, area)) {
			return true
		}
	}
	return false
}

// ErrNoSubscription says that there is none with that number.
var ErrNoSubscription = errors.New("there is no such webhook subscription")

// Create adds a subscription and returns it with its secret, which is shown
// this once. What is wrong with the arguments is jobs.ErrInvalid.
func (h *Handler) Create(ctx context.Context, name, address string, events []string) (Subscription, string, error) {
	if len(events) == 0 {
		events = []string{"*"}
	}
	list := strings.Join(events, ",")
	if err := h.check(address, events, list); err != nil {
		return Subscription{}, "", jobs.Invalid(err)
	}
	secret, now := NewSecret(), h.c.Now()
	id, err := h.insert(ctx, cut(name, 191), address, list, secret, now)
	if err != nil {
		return Subscription{}, "", fmt.Errorf("adding a webhook subscription: %w", err)
	}
	s, err := h.subscription(ctx, id)
	return s.Subscription, secret, err
}

// check says what is wrong with a subscription to be.
func (h *Handler) check(address string, events []string, list string) error {
	if err := checkURL(address, h.c.AllowHTTP); err != nil {
		return err
	}
	for _, e := range events {
		if !eventFilter.MatchString(e) {
			return phrase.Errorf("%.60q is neither an event nor a filter such as job.* or *", e)
		}
	}
	if len(list) > 1000 {
		return phrase.Errorf("the list of events is longer than 1,000 bytes: use filters such as job.*")
	}
	return nil
}

func (h *Handler) insert(ctx context.Context, name, address, events, secret string, now time.Time) (int64, error) {
	return database.InsertID(ctx, h.c.DB, `INSERT INTO cmsjobs_webhooks (name, url, events, secret, old_secret,
		old_secret_until, status, reason, created_at, updated_at)
		VALUES (?, ?, ?, ?, '', 0, ?, '', ?, ?)`, name, address, events, secret, Active, now.UnixMilli(),
		now.UnixMilli())
}

type subscriptionRow struct {
	ID                        int64
	Name, URL, Events, Secret string
	OldSecret                 string `db:"old_secret"`
	OldUntil                  int64  `db:"old_secret_until"`
	Status                    Status
	Reason                    string
	CreatedAt                 int64 `db:"created_at"`
	UpdatedAt                 int64 `db:"updated_at"`
}

func (r subscriptionRow) subscription() keyed {
	s := Subscription{ID: r.ID, Name: r.Name, URL: r.URL, Events: strings.Split(r.Events, ","), Status: r.Status,
		Reason:    r.Reason,
		CreatedAt: time.UnixMilli(r.CreatedAt).UTC(), UpdatedAt: time.UnixMilli(r.UpdatedAt).UTC()}
	return keyed{s, r.Secret, r.OldSecret, time.UnixMilli(r.OldUntil)}
}

const subscriptionColumns = "SELECT id, name, url, events, secret, old_secret, old_secret_until, status, reason, " +
	"created_at, updated_at FROM cmsjobs_webhooks "

func (h *Handler) subscription(ctx context.Context, id int64) (keyed, error) {
	var r subscriptionRow
	err := h.c.DB.GetContext(ctx, &r, h.c.DB.Rebind(subscriptionColumns+"WHERE id = ?"), id)
	if errors.Is(err, sql.ErrNoRows) {
		return keyed{}, ErrNoSubscription
	}
	if err != nil {
		return keyed{}, fmt.Errorf("reading webhook subscription %d: %w", id, err)
	}
	return r.subscription(), nil
}

// Subscriptions lists all of them, without secrets.
func (h *Handler) Subscriptions(ctx context.Context) ([]Subscription, error) {
	var rows []subscriptionRow
	if err := h.c.DB.SelectContext(ctx, &rows, subscriptionColumns+"ORDER BY id LIMIT 1000"); err != nil {
		return nil, fmt.Errorf("listing webhook subscriptions: %w", err)
	}
	list := make([]Subscription, len(rows))
	for i, r := range rows {
		list[i] = r.subscription().Subscription
	}
	return list, nil
}

// Rotate makes a new secret and returns it. The old one signs beside it for
// overlap.
func (h *Handler) Rotate(ctx context.Context, id int64, overlap time.Duration) (string, error) {
	s, err := h.subscription(ctx, id)
	if err != nil {
		return "", err
	}
	secret, now := NewSecret(), h.c.Now()
	return secret, h.change(ctx, id, "secret = ?, old_secret = ?, old_secret_until = ?", secret, s.secret,
		now.Add(overlap).UnixMilli())
}

// Disable stops deliveries to a subscription; what waits ends without being sent.
func (h *Handler) Disable(ctx context.Context, id int64, reason string) error {
	return h.change(ctx, id, "status = ?, reason = ?", Disabled, cut(reason, 500))
}

// Enable lets deliveries go again.
func (h *Handler) Enable(ctx context.Context, id int64) error {
	return h.change(ctx, id, "status = ?, reason = ?", Active, "")
}

func (h *Handler) change(ctx context.Context, id int64, set string, args ...any) error {
	args = append(args, h.c.Now().UnixMilli(), id)
	result, err := h.c.DB.ExecContext(ctx, h.c.DB.Rebind("UPDATE cmsjobs_webhooks SET "+set+", updated_at = ? WHERE "+
		"id = ?"), args...)
	if err != nil {
		return fmt.Errorf("changing webhook subscription %d: %w", id, err)
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, ErrNoSubscription)
	}
	return nil
}

// Remove deletes a subscription; its deliveries stay in the log.
func (h *Handler) Remove(ctx context.Context, id int64) error {
	result, err := h.c.DB.ExecContext(ctx, h.c.DB.Rebind("DELETE FROM cmsjobs_webhooks WHERE id = ?"), id)
	if err != nil {
		return fmt.Errorf("removing webhook subscription %d: %w", id, err)
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, ErrNoSubscription)
	}
	return nil
}

// Publish makes one job for each active subscription that wants the event, and
// writes what they say into the outbox. The caller enqueues them: in its own
// transaction, or as follow-ups.
func (h *Handler) Publish(ctx context.Context, event string, data any) ([]jobs.Spec, error) {
	if err := checkEvent(event); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("encoding the event %s: %w", event, err)
	}
	all, err := h.Subscriptions(ctx)
	if err != nil {
		return nil, err
	}
	at := h.c.Now().UTC().Format(time.RFC3339)
	var list []jobs.Spec
	for _, s := range all {
		if s.Status == Active && s.wants(event) {
			list = append(list, Deliver.New(DeliverPayload{Subscription: s.ID, Event: event, Data: raw, At: at}))
		}
	}
	return h.c.Orders.Give(ctx, h.registry, list...)
}

// PublishFailure is Publish for job.failed. Webhooks that failed make none.
func (h *Handler) PublishFailure(ctx context.Context, job jobs.Job, message string) ([]jobs.Spec, error) {
	if job.Type == Deliver.Name {
		return nil, nil
	}
	return h.Publish(ctx, JobFailed, map[string]any{"uuid": job.UUID, "type": job.Type, "queue": job.Queue,
		"attempt": job.Attempt, "error": cut(message, 500)})
}
