package mail

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/provider"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// serviceDriver hands mails to the HTTP interface of a mail service.
type serviceDriver struct {
	account provider.Account
	client  *http.Client
	now     func() time.Time
}

// serviceClient makes requests to the mail services. An address that only the
// configuration can name may be in a private network where mail.allow_private says so.
func serviceClient(c Config) *http.Client {
	o := outbound.Options{Timeout: c.CommandTimeout, AllowPrivate: c.AllowPrivate,
		AllowHTTP: strings.HasPrefix(c.Transport.Endpoint, "http:")}
	if c.TLS != nil {
		o.RootCAs = c.TLS.RootCAs
	}
	return outbound.New(o)
}

func (d serviceDriver) deliver(ctx context.Context, e envelope, msg message, handOver func([]address.Address) error) (
	[]outcome, error) {
	var text bytes.Buffer
	sender, err := provider.New(d.account, d.client, d.now)
	if err == nil {
		_, err = msg.WriteTo(&text)
	}
	boxes := make([]string, len(e.recipients))
	byBox := map[string]address.Address{}
	for i, a := range e.recipients {
		boxes[i], byBox[a.Mailbox] = a.Mailbox, a
	}
	var batches [][]string
	if err == nil {
		batches, err = sender.Batches(text.Bytes(), boxes)
	}
	if err != nil {
		return all(e.recipients, Deferred, 0, err.Error()), err
	}
	var outcomes []outcome
	for _, batch := range batches {
		to := make([]address.Address, len(batch))
		for i, box := range batch {
			to[i] = byBox[box]
		}
		if err != nil { // the service is out: the others wait too
			outcomes = append(outcomes, all(to, Deferred, 0, err.Error())...)
			continue
		}
		if err = handOver(to); err != nil {
			outcomes = append(outcomes, all(to, Deferred, 0, err.Error())...)
			continue
		}
		var id string
		id, err = sender.Send(ctx, provider.Mail{From: e.from, Recipients: batch, Text: text.Bytes(),
			ID: messageIDIn(text.Bytes())})
		var more []outcome
		more, err = d.outcomes(to, id, err)
		outcomes = append(outcomes, more...)
	}
	return outcomes, err
}

// outcomes is what an answer means for those who were to get the mail. The error says
// that the service takes no mail now.
func (d serviceDriver) outcomes(to []address.Address, id string, err error) ([]outcome, error) {
	var e *provider.Error
	switch {
	case err == nil:
		return all(to, Accepted, 0, cut(d.account.Service+" took it as "+id, maxAnswer)), nil
	case !errors.As(err, &e):
		return all(to, Deferred, 0, err.Error()), err
	case e.Unclear:
		return all(to, Unknown, e.Code, cut(e.Error(), maxAnswer)), shorten(err)
	case e.Refused:
		list := all(to, Refused, e.Code, cut(e.Error(), maxAnswer))
		list[0].hard = e.NoMailbox && len(to) == 1 // which of several is meant is not said
		return list, nil
	}
	err = fmt.Errorf("%s: %w", d.account.Service, shorten(err))
	if e.Wait > 0 {
		err = jobs.RetryAfter(err, e.Wait)
	}
	return all(to, Deferred, e.Code, cut(e.Error(), maxAnswer)), err
}

// messageIDIn is the Message-ID of a composed mail, without < and >.
func messageIDIn(text []byte) string {
	for line := range bytes.Lines(text) {
		name, value, is := bytes.Cut(line, []byte(":"))
		switch {
		case len(bytes.TrimSpace(line)) == 0:
			return ""
		case is && bytes.EqualFold(name, []byte("Message-Id")):
			return string(bytes.Trim(bytes.TrimSpace(value), "<>"))
		}
	}
	return ""
}

// greetService asks a service's address whether anybody is there; any answer will do.
func (h *Handler) greetService(ctx context.Context, t Transport) error {
	sender, err := provider.New(t.account(), h.client, h.c.Now)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, sender.Base(), nil)
	if err != nil {
		return err
	}
	answer, err := h.client.Do(r)
	if err != nil {
		return shorten(err)
	}
	return answer.Body.Close()
}

// HandleServiceWebhook takes in what a mail service sends to
// /api/v1/mail/bounces/SERVICE: mails that came back, and complaints. The services sign
// in different ways or not at all: all of them send a password that stands in the
// address, which must be Config.BouncePassword. It returns how many it took in,
// ErrUnsigned when the password is wrong, and provider.ErrUnreadable.
func (h *Handler) HandleServiceWebhook(ctx context.Context, service, password string, body []byte) (int, error) {
	given, want := sha256.Sum256([]byte(password)), sha256.Sum256([]byte(h.c.BouncePassword))
	if h.c.BouncePassword == "" || subtle.ConstantTimeCompare(given[:], want[:]) != 1 {
		return 0, ErrUnsigned
	}
	reports, confirm, err := provider.Reports(service, body)
	if err != nil {
		return 0, err
	}
	if confirm != "" {
		return 0, h.confirm(ctx, confirm)
	}
	for i, r := range reports {
		b := Bounce{Recipient: r.Recipient, MessageID: r.MessageID, Reason: SoftBounce, Status: statusIn(r.Status),
			Detail: cut(r.Detail, maxAnswer)}
		switch {
		case r.Complaint:
			b.Reason = Complaint
		case r.Hard:
			b.Reason = HardBounce
		}
		if err := h.Bounce(ctx, b); err != nil {
			return i, fmt.Errorf("report %d: %w", i+1, err)
		}
	}
	return len(reports), nil
}

// confirm tells a service that its reports are wanted here.
func (h *Handler) confirm(ctx context.Context, at string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	answer, err := h.client.Do(r)
	if err != nil {
		return fmt.Errorf("confirming the subscription: %w", outbound.WithoutAddress(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("confirming the subscription: HTTP %d", answer.StatusCode)
	}
	return nil
}
