package mail

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	gomessage "github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset" // bounces come in all of them

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
)

// Bounce is what is known of one mail that came back.
type Bounce struct {
	Recipient string
	// MessageID of the mail that came back, without < and >; "" when unknown.
	MessageID string
	Reason    string // HardBounce, Complaint, or SoftBounce
	Status    string // RFC 3463, e.g. 5.1.1; "" when unknown
	Detail    string
}

// SoftBounce is one that may be fixed by waiting (a full mailbox): it is
// noted and suppresses nothing.
const SoftBounce = "soft_bounce"

// ErrNoBounce says that a message is not a delivery report.
var ErrNoBounce = errors.New("the message is no delivery report (RFC 3464)")

// maxReport bounds one delivery report, which may hold the whole mail.
const maxReport = 8 << 20

// ParseBounce reads a delivery status notification (RFC 3464). One report may
// tell of several recipients. A report of success or delay has none.
func ParseBounce(r io.Reader) ([]Bounce, error) {
	entity, err := gomessage.Read(io.LimitReader(r, maxReport))
	if err != nil && !gomessage.IsUnknownCharset(err) {
		return nil, fmt.Errorf("reading a delivery report: %w", err)
	}
	var report dsn
	err = entity.Walk(func(path []int, part *gomessage.Entity, err error) error {
		if err != nil && !gomessage.IsUnknownCharset(err) && !gomessage.IsUnknownEncoding(err) {
			return err
		}
		if len(path) > 5 {
			return errors.New("its parts are nested too deeply")
		}
		return report.read(part)
	})
	if err != nil {
		return nil, fmt.Errorf("reading a delivery report: %w", err)
	}
	if !report.found {
		return nil, ErrNoBounce
	}
	for i := range report.bounces {
		report.bounces[i].MessageID = report.messageID
	}
	return report.bounces, nil
}

type dsn struct {
	found     bool
	messageID string
	bounces   []Bounce
}

func (d *dsn) read(part *gomessage.Entity) error {
	kind, _, _ := part.Header.ContentType() // a broken type is none that we look for
	switch strings.ToLower(kind) {
	case "message/delivery-status", "message/global-delivery-status":
		d.found = true
		return d.status(part.Body)
	case "message/rfc822", "text/rfc822-headers", "message/global", "message/global-headers":
		return d.original(part.Body)
	}
	return nil
}

// maxFields bounds the recipients of one report.
const maxFields = 1000

// status reads the groups of fields: one about the message, one a recipient.
func (d *dsn) status(body io.Reader) error {
	r := textproto.NewReader(bufio.NewReader(io.LimitReader(body, 1<<20)))
	for range maxFields {
		fields, err := r.ReadMIMEHeader()
		if b, failed := failure(fields); failed {
			d.bounces = append(d.bounces, b)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("its status part: %w", err)
		}
	}
	return nil
}

func failure(fields textproto.MIMEHeader) (Bounce, bool) {
	recipient := fields.Get("Original-Recipient")
	if recipient == "" {
		recipient = fields.Get("Final-Recipient")
	}
	_, mailbox, typed := strings.Cut(recipient, ";") // "rfc822; a@b.c"
	if !typed || !strings.EqualFold(strings.TrimSpace(fields.Get("Action")), "failed") {
		return Bounce{}, false
	}
	address, err := address.Parse(strings.TrimSpace(mailbox))
	if err != nil {
		return Bounce{}, false
	}
	status := statusIn(fields.Get("Status"))
	_, said, _ := strings.Cut(fields.Get("Diagnostic-Code"), ";")
	b := Bounce{Recipient: address.Key(), Reason: SoftBounce, Status: status,
		Detail: cut(strings.TrimSpace(said), maxAnswer)}
	if noMailbox(0, status) {
		b.Reason = HardBounce
	}
	return b, true
}

// original finds the Message-ID of the mail that came back.
func (d *dsn) original(body io.Reader) error {
	header, err := textproto.NewReader(bufio.NewReader(io.LimitReader(body, 1<<20))).ReadMIMEHeader()
	if err != nil && len(header) == 0 {
		return nil // no readable original: the recipient is enough
	}
	if d.messageID == "" {
		d.messageID = cut(strings.Trim(strings.TrimSpace(header.Get("Message-Id")), "<>"), 255)
	}
	return nil
}

// ImportBounces reads a file of delivery reports: one message, or an mbox. It
// returns how many bounces it took in and how many messages were none.
func (h *Handler) ImportBounces(ctx context.Context, r io.Reader) (taken, skipped int, err error) {
	err = eachMessage(r, func(text []byte) error {
		bounces, err := ParseBounce(bytes.NewReader(text))
		if err != nil {
			skipped++
			return nil
		}
		for _, b := range bounces {
			if err := h.Bounce(ctx, b); err != nil {
				return err
			}
			taken++
		}
		return nil
	})
	return taken, skipped, err
}

// eachMessage cuts an mbox at its "From " lines (RFC 4155); a file without
// them is one message.
func eachMessage(r io.Reader, do func([]byte) error) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	var text bytes.Buffer
	flush := func() error {
		defer text.Reset()
		if len(bytes.TrimSpace(text.Bytes())) == 0 {
			return nil
		}
		return do(text.Bytes())
	}
	blank := true
	for {
		line, err := lines.ReadSlice('\n')
		if blank && bytes.HasPrefix(line, []byte("From ")) {
			if err := flush(); err != nil {
				return err
			}
			line = nil
		}
		blank = len(bytes.TrimSpace(line)) == 0
		if text.Len()+len(line) <= maxReport {
			text.Write(line)
		}
		switch {
		case errors.Is(err, io.EOF):
			return flush()
		case errors.Is(err, bufio.ErrBufferFull): // a long line goes on
			blank = false
		case err != nil:
			return fmt.Errorf("reading delivery reports: %w", err)
		}
	}
}

// Bounce notes one: in the ledger, where the mail is ours, and, for a hard
// bounce or a complaint, in the suppression list.
func (h *Handler) Bounce(ctx context.Context, b Bounce) error {
	a, err := address.Parse(b.Recipient)
	if err != nil {
		return err
	}
	if b.MessageID != "" && b.Reason != Complaint {
		_, err := h.c.DB.ExecContext(ctx, h.c.DB.Rebind("UPDATE cmsjobs_mail SET status = ?, answer = ?, updated_at "+
			"= ? WHERE message_id = ? AND recipient = ? AND status IN ('accepted', 'unknown')"),
			Bounced, cut(strings.TrimSpace(b.Status+" "+b.Detail), maxAnswer), h.c.Now().UnixMilli(), b.MessageID,
			a.Key())
		if err != nil {
			return fmt.Errorf("noting a bounce: %w", err)
		}
	}
	switch b.Reason {
	case HardBounce:
		return h.Suppress(ctx, a.Mailbox, HardBounce, strings.TrimSpace(b.Status+" "+b.Detail),
			h.c.Now().Add(h.c.HardBounceExpiry))
	case Complaint:
		return h.Suppress(ctx, a.Mailbox, Complaint, b.Detail, time.Time{})
	}
	return nil
}

// ErrUnsigned says that a webhook's signature is missing or wrong.
var ErrUnsigned = errors.New("the request is not signed as it must be")

// HandleBounceWebhook takes in the body of POST /api/v1/mail/bounces: one
// object {"email", "type": hard|soft|complaint, "messageId", "status",
// "reason"} or a list of them. It returns how many it took in, and ErrUnsigned
// when the signature is wrong.
func (h *Handler) HandleBounceWebhook(ctx context.Context, header http.Header, body []byte) (int, error) {
	if h.c.VerifyWebhook == nil {
		return 0, fmt.Errorf("%w: no secret is configured (mail.bounce_secret)", ErrUnsigned)
	}
	if err := h.c.VerifyWebhook(header, body); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnsigned, err)
	}
	type event struct{ Email, Type, MessageID, Status, Reason string }
	var events []event
	if err := json.Unmarshal(body, &events); err != nil {
		var one event
		if err := json.Unmarshal(body, &one); err != nil {
			return 0, fmt.Errorf("the bounces are not the JSON that is taken here: %w", err)
		}
		events = []event{one}
	}
	for i, e := range events {
		reason, known := map[string]string{"hard": HardBounce, "soft": SoftBounce, "complaint": Complaint}[e.Type]
		if !known {
			return i, fmt.Errorf("bounce %d has the type %.40q; hard, soft and complaint are known", i+1, e.Type)
		}
		b := Bounce{Recipient: e.Email, MessageID: strings.Trim(e.MessageID, "<>"), Reason: reason, Status: e.Status,
			Detail: cut(e.Reason, maxAnswer)}
		if err := h.Bounce(ctx, b); err != nil {
			return i, fmt.Errorf("bounce %d: %w", i+1, err)
		}
	}
	return len(events), nil
}
