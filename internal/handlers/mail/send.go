package mail

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// send runs a mail.send job.
func (h *Handler) send(ctx context.Context, job jobs.Job, p SendPayload) error {
	d, err := h.delivery(ctx, job, p)
	if err != nil {
		return err
	}
	return d.run(ctx, p)
}

// run sends to everybody who has no answer yet.
func (d *delivery) run(ctx context.Context, p SendPayload) error {
	if err := d.markDead(ctx); err != nil {
		return err
	}
	if age, old := d.tooOld(p); old {
		return d.drop(ctx, Expired, fmt.Sprintf("dropped: %s old when its turn came", age.Round(time.Second)))
	}
	if err := d.suppress(ctx); err != nil {
		return err
	}
	if err := d.h.allow(ctx, d.transport); err != nil {
		return err
	}
	for _, g := range d.letter.groups() {
		if err := d.group(ctx, g); err != nil {
			return errors.Join(err, d.report(ctx))
		}
	}
	return errors.Join(d.outcomeError(), d.report(ctx))
}

func (h *Handler) delivery(ctx context.Context, job jobs.Job, p SendPayload) (*delivery, error) {
	if h.c.OneRecipient {
		if err := oneRecipient(job.Data); err != nil {
			return nil, jobs.Permanent(err)
		}
	}
	settings, err := h.c.Site.Settings(ctx)
	if err != nil {
		return nil, err
	}
	t, err := h.transport(settings)
	if err != nil {
		return nil, err
	}
	l, err := h.letter(ctx, job.UUID, p, settings, t)
	if err != nil {
		return nil, err
	}
	known, err := h.ledger.load(ctx, job.UUID)
	if err != nil {
		return nil, err
	}
	if len(known) == 0 && h.c.KeepPayload {
		if err := h.keep(ctx, job.UUID, job.Data); err != nil {
			return nil, err
		}
	}
	return &delivery{h: h, job: job, letter: l, transport: t, driver: h.driver(t), settings: settings,
		template: p.Template,
		token:    newToken(), known: known, last: map[string]outcome{}, logged: map[string]bool{}}, nil
}

// markDead finds recipients whose row still says "sending": the run that
// wrote it died before it saw the answer, or cannot write it.
func (d *delivery) markDead(ctx context.Context) error {
	var dead []address.Address
	for _, g := range d.letter.groups() {
		for _, a := range g.recipients {
			if d.known[a.Key()] == Sending {
				dead = append(dead, a)
			}
		}
	}
	if len(dead) == 0 {
		return nil
	}
	const why = "the run that was sending it ended before it saw the server's answer"
	if err := d.h.ledger.markUnknown(ctx, d.job.UUID, dead, why); err != nil {
		return err
	}
	d.note(all(dead, Unknown, 0, why))
	return nil
}

// tooOld says whether the mail has lost its use while it waited.
func (d *delivery) tooOld(p SendPayload) (time.Duration, bool) {
	limit := p.maxAge()
	if limit == 0 {
		limit = d.h.c.MaxAge[p.Template]
	}
	if limit == 0 || d.job.EnqueuedAt.IsZero() {
		return 0, false
	}
	age := d.h.c.Now().Sub(d.job.EnqueuedAt)
	return age, age > limit
}

// drop settles everybody who is still open without sending.
func (d *delivery) drop(ctx context.Context, state Status, why string) error {
	if open := d.allPending(); len(open) > 0 {
		if err := d.settle(ctx, group{}, all(open, state, 0, why), d.h.c.Now()); err != nil {
			return err
		}
	}
	jobs.Logf(ctx, "%s", why)
	return errors.Join(d.outcomeError(), d.report(ctx))
}

// suppress leaves out addresses that get no mail.
func (d *delivery) suppress(ctx context.Context) error {
	found, err := d.h.suppressed(ctx, d.allPending())
	if err != nil || len(found) == 0 {
		return err
	}
	return d.settle(ctx, group{}, found, d.h.c.Now())
}

// group sends one message to all that are open in its group, in as many
// transactions as its size and the limits ask for.
func (d *delivery) group(ctx context.Context, g group) error {
	open := d.pending(g.recipients)
	if len(open) == 0 {
		return nil
	}
	msg := d.letter.message(g, d.h.c.Now())
	for len(open) > 0 {
		batch, err := d.admit(ctx, open[:min(len(open), d.h.c.MaxRecipients)])
		if err != nil {
			return err
		}
		outcomes, err := d.transaction(ctx, g, msg, batch)
		if err != nil {
			return err
		}
		again := tooMany(outcomes)
		open = slices.DeleteFunc(open, func(a address.Address) bool {
			return slices.Contains(batch, a) && !slices.Contains(again, a)
		})
	}
	return nil
}

// tooMany are the recipients that the server wants in a transaction of their
// own (452 after it took others: RFC 5321, 4.5.3.1.10).
func tooMany(outcomes []outcome) []address.Address {
	var again []address.Address
	progress := false
	for _, o := range outcomes {
		progress = progress || o.status == Accepted
		if o.status == Deferred && o.code == 452 {
			again = append(again, o.to)
		}
	}
	if !progress {
		return nil
	}
	return again
}

// ErrLimited says that a rate limit is used up.
var ErrLimited = errors.New("the mail rate limit is used up")

// admit waits for the rate limits: a short wait here, a long one by giving the
// job back, which charges no attempt.
func (d *delivery) admit(ctx context.Context, want []address.Address) ([]address.Address, error) {
	// the last two: no mail is sent
	if d.unlimited || d.transport.Driver == DriverLog || d.transport.Driver == DriverFiles {
		return want, nil
	}
	var waited time.Duration
	for {
		g, err := d.h.limiter.take(ctx, want)
		if err != nil {
			return nil, err
		}
		if len(g.taken) > 0 {
			return g.taken, nil
		}
		if waited += g.wait; waited > d.h.c.InlineWait {
			return nil, jobs.RetryAfter(ErrLimited, g.wait)
		}
		if err := pause(ctx, g.wait); err != nil {
			return nil, err
		}
	}
}
