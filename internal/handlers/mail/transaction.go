package mail

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
)

// transaction hands the message to the driver and writes down what became of it.
func (d *delivery) transaction(ctx context.Context, g group, msg message, batch []address.Address) ([]outcome, error) {
	started := d.h.c.Now()
	handOver := func(taken []address.Address) error {
		if err := d.h.ledger.claim(ctx, d.entry(g, started), taken, d.known); err != nil {
			return fmt.Errorf("%w: %w", errLedger, err)
		}
		for _, a := range taken {
			d.known[a.Key()] = Sending
		}
		return nil
	}
	outcomes, err := d.driver.deliver(ctx, envelope{d.letter.from.Mailbox, batch}, msg, handOver)
	written := d.settle(ctx, g, outcomes, started)
	d.recordUse(ctx, err)
	if written != nil { // nor suppressed: the next run would find only that, and not why
		return outcomes, fmt.Errorf("%w (what was sent is not sent again)", written)
	}
	d.h.afterwards(ctx, d, g, outcomes)
	if err != nil && ctx.Err() != nil {
		return outcomes, errors.Join(context.Cause(ctx), err)
	}
	if err != nil && d.hasUnknown() {
		return outcomes, nil // outcomeError says it
	}
	return outcomes, err
}

// entry is what this run writes into each row of a group.
func (d *delivery) entry(g group, started time.Time) note {
	return note{uuid: d.job.UUID, token: d.token, messageID: d.letter.messageID(g), sender: d.letter.from.Mailbox,
		subject:  d.letter.content.Subject,
		template: d.template, driver: d.transport.Driver, host: d.transport.Host, attempt: d.job.Attempt,
		started: started}
}

// settleWaits stand between the tries to write an answer down: what was sent must be written down, also through
// a short outage of the database and while the worker shuts down.
var settleWaits = []time.Duration{200 * time.Millisecond, time.Second}

func (d *delivery) settle(ctx context.Context, g group, outcomes []outcome, started time.Time) error {
	d.note(outcomes)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	n := d.entry(g, started)
	err := d.h.ledger.settle(ctx, n, outcomes)
	for _, wait := range settleWaits {
		if err == nil {
			return nil
		}
		if pause(ctx, wait) != nil {
			return err
		}
		err = d.h.ledger.settle(ctx, n, outcomes)
	}
	return err
}

func (h *Handler) allow(ctx context.Context, t Transport) error {
	if h.c.Breaker == nil || t.dependency() == "" {
		return nil
	}
	return h.c.Breaker.Allow(ctx, t.dependency())
}

// recordUse tells the breaker how the server is. Any answer, also a refusal,
// shows that it lives; trouble on our side shows nothing.
func (d *delivery) recordUse(ctx context.Context, err error) {
	if d.h.c.Breaker == nil || d.transport.dependency() == "" || ctx.Err() != nil || errors.Is(err, errLedger) {
		return
	}
	if err := d.h.c.Breaker.Record(ctx, d.transport.dependency(), err); err != nil {
		d.h.c.Logger.WarnContext(ctx, "circuit breaker not updated", "event", "circuit.record_failed",
			"dependency", d.transport.dependency(), "error", err)
	}
}
