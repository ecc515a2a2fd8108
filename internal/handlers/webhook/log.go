package webhook

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/listing"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// How much of a request and an answer is kept, in characters.
const (
	maxRequest = 256 << 10
	maxAnswer  = 4 << 10
)

// Delivery is one attempt to deliver one message.
type Delivery struct {
	ID           int64     `json:"id"`
	MessageID    string    `json:"message_id"`   // the webhook-id
	Subscription int64     `json:"subscription"` // 0 for a plain url
	Event        string    `json:"event"`
	URL          string    `json:"url"` // without its path and query, which may be secret
	Attempt      int       `json:"attempt"`
	Status       int       `json:"status"` // of HTTP; 0 when there was no answer
	Error        string    `json:"error"`
	Request      string    `json:"request"` // the body, cut
	Answer       string    `json:"answer"`  // the body, cut
	DurationMS   int64     `json:"duration_ms"`
	At           time.Time `json:"at,omitzero"`
}

// call is one attempt.
type call struct {
	subscription int64
	event, url   string
	id           string
	body         []byte
	signature    string // "" is unsigned
	attempt      int
	at           time.Time
	// What came back.
	status     int
	answer     string
	retryAfter string
	err        error
	took       time.Duration
}

// Succeeded says whether the receiver took it.
func (d Delivery) Succeeded() bool { return d.Status >= 200 && d.Status <= 299 }

// log writes an attempt down, also when the run is asked to stop.
func (h *Handler) log(ctx context.Context, c *call) error {
	ctx, cancel := jobs.Outlasting(ctx)
	defer cancel()
	problem := ""
	if c.err != nil {
		problem = c.err.Error()
	}
	_, err := h.c.DB.ExecContext(ctx, h.c.DB.Rebind(`INSERT INTO cmsjobs_webhook_deliveries (message_id,
		subscription_id, event, url, attempt, status, error, request, answer, duration_ms, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`),
		c.id, c.subscription, c.event, cut(c.url, 2000), c.attempt, c.status, cut(problem, 500),
		cut(string(c.body), maxRequest), cut(c.answer, maxAnswer), c.took.Milliseconds(), c.at.UnixMilli())
	return err
}

type deliveryRow struct {
	ID             int64
	MessageID      string `db:"message_id"`
	Subscription   int64  `db:"subscription_id"`
	Event, URL     string
	Attempt        int
	Status         int
	Error, Request string
	Answer         string
	DurationMS     int64 `db:"duration_ms"`
	CreatedAt      int64 `db:"created_at"`
}

func (r deliveryRow) delivery() Delivery {
	return Delivery{ID: r.ID, MessageID: r.MessageID, Subscription: r.Subscription, Event: r.Event, URL: shown(r.URL),
		Attempt: r.Attempt, Status: r.Status, Error: r.Error,
		Request: r.Request, Answer: r.Answer, DurationMS: r.DurationMS,
		At: time.UnixMilli(r.CreatedAt).UTC()}
}

const deliveryColumns = "SELECT id, message_id, subscription_id, event, url, attempt, status, error, request, " +
	"answer, duration_ms, created_at FROM cmsjobs_webhook_deliveries "

// Deliveries lists attempts, the newest first, by the page's cursor; of one
// subscription, or of all when it is 0. Total is −1 in a large log.
func (h *Handler) Deliveries(ctx context.Context, subscription int64, p jobs.Page) (jobs.List[Delivery], error) {
	limit := p.Limit
	if limit <= 0 || limit > 200 {
		limit = 50
	}
	where, args := []string{"1 = 1"}, []any{}
	if subscription != 0 {
		where, args = append(where, "subscription_id = ?"), append(args, subscription)
	}
	total, err := listing.Total(ctx, h.c.DB, "cmsjobs_webhook_deliveries", strings.Join(where, " AND "), args...)
	if err != nil {
		return jobs.List[Delivery]{}, err
	}
	if p.Cursor != "" {
		before, err := strconv.ParseInt(p.Cursor, 10, 64)
		if err != nil {
			return jobs.List[Delivery]{}, jobs.Invalid(phrase.Errorf("the cursor %.40q is not one of this list",
				p.Cursor))
		}
		where, args = append(where, "id < ?"), append(args, before)
	}
	var rows []deliveryRow
	query := deliveryColumns + "WHERE " + strings.Join(where, " AND ") + " ORDER BY id DESC LIMIT ?"
	if err := h.c.DB.SelectContext(ctx, &rows, h.c.DB.Rebind(query), append(args, limit+1)...); err != nil {
		return jobs.List[Delivery]{}, fmt.Errorf("listing webhook deliveries: %w", err)
	}
	list := jobs.List[Delivery]{Total: total}
	for i, r := range rows {
		if i == limit {
			list.Next = strconv.FormatInt(rows[i-1].ID, 10)
			break
		}
		list.Items = append(list.Items, r.delivery())
	}
	return list, nil
}

// ErrNoDelivery says that there is none with that number.
var ErrNoDelivery = errors.New("there is no such webhook delivery")

// Redeliver sends a logged message again, with its first webhook-id.
func (h *Handler) Redeliver(ctx context.Context, delivery int64) (jobs.Receipt, error) {
	var r deliveryRow
	err := h.c.DB.GetContext(ctx, &r, h.c.DB.Rebind(deliveryColumns+"WHERE id = ?"), delivery)
	if errors.Is(err, sql.ErrNoRows) {
		return jobs.Receipt{}, ErrNoDelivery
	}
	if err != nil {
		return jobs.Receipt{}, fmt.Errorf("reading webhook delivery %d: %w", delivery, err)
	}
	var sent struct {
		Timestamp string
		Data      json.RawMessage
	}
	if json.Unmarshal([]byte(r.Request), &sent) != nil {
		return jobs.Receipt{}, phrase.Errorf("the message was too long to be kept whole, so it cannot be sent again "+
			"from here: %w", jobs.ErrConflict)
	}
	p := DeliverPayload{Subscription: r.Subscription, Event: r.Event, Data: sent.Data, ID: r.MessageID,
		At: sent.Timestamp}
	if r.Subscription == 0 {
		p.URL = r.URL
	}
	return h.enqueue(ctx, p)
}

// SendTest sends webhook.test to a subscription, whatever events it wants.
func (h *Handler) SendTest(ctx context.Context, subscription int64) (jobs.Receipt, error) {
	if _, err := h.subscription(ctx, subscription); err != nil {
		return jobs.Receipt{}, err
	}
	return h.enqueue(ctx, DeliverPayload{Subscription: subscription, Event: Test,
		Data: json.RawMessage(`{"test":true}`), At: h.c.Now().UTC().Format(time.RFC3339)})
}

func (h *Handler) enqueue(ctx context.Context, p DeliverPayload) (jobs.Receipt, error) {
	if h.c.Enqueue == nil {
		return jobs.Receipt{}, errors.New("webhook: no queue to deliver through")
	}
	given, err := h.c.Orders.Give(ctx, h.registry, Deliver.New(p))
	if err != nil {
		return jobs.Receipt{}, err
	}
	receipts, err := h.c.Enqueue.Enqueue(ctx, given...)
	if err != nil {
		return jobs.Receipt{}, fmt.Errorf("enqueuing a webhook: %w", err)
	}
	return receipts[0], nil
}

// Prune removes attempts that are older than before, in steps, and counts them.
func (h *Handler) Prune(ctx context.Context, before time.Time) (int64, error) {
	var total int64
	for {
		result, err := h.c.DB.ExecContext(ctx, h.c.DB.Rebind(`DELETE FROM cmsjobs_webhook_deliveries WHERE id IN
			(SELECT k FROM (SELECT id AS k FROM cmsjobs_webhook_deliveries WHERE created_at < ? ORDER BY created_at
			LIMIT 1000) old)`), before.UnixMilli())
		if err != nil {
			return total, fmt.Errorf("pruning webhook deliveries: %w", err)
		}
		n, err := result.RowsAffected()
		if total += n; err != nil || n == 0 {
			return total, err
		}
	}
}

// shown is an address as errors and lists say it: its path, query and user may
// be secret.
func shown(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(an address that cannot be read)"
	}
	if u.Path == "" || u.Path == "/" {
		return u.Scheme + "://" + u.Host + u.Path
	}
	return u.Scheme + "://" + u.Host + "/…"
}
