package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/emersion/go-imap"
	"github.com/emersion/go-imap/client"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/outbound"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// ReadBounces is the type mail.bounces: it reads the mailbox that delivery
// reports come to.
var ReadBounces = jobs.Kind[struct{}]{
	Name:   "mail.bounces",
	Policy: jobs.Policy{MaxAttempts: 3, Timeout: 5 * time.Minute, Backoff: jobs.Fixed(time.Minute)},
}

// looked marks messages that were looked at, so that each is read once.
const looked = "cmsjobs"

// messagesAtOnce bounds one job; the next goes on where it ended.
const messagesAtOnce = 200

func (m Mailbox) address() string {
	port := m.Port
	switch {
	case port != 0:
	case m.TLS == TLSStart || m.TLS == TLSNone:
		port = 143
	default:
		port = 993
	}
	return net.JoinHostPort(m.Host, strconv.Itoa(port))
}

// MailboxResult is what a mail.bounces job leaves for people to read.
type MailboxResult struct {
	Bounces int `json:"bounces"`
	Reports int `json:"reports"` // messages that were delivery reports
	Others  int `json:"others"`  // messages that were none
	Left    int `json:"left"`    // for the next job
}

// readBounces runs a mail.bounces job.
func (h *Handler) readBounces(ctx context.Context, _ jobs.Job, _ struct{}) error {
	if h.c.Mailbox.Host == "" {
		return jobs.Permanent(errors.New("no mailbox for bounces is configured (mail.mailbox.host)"))
	}
	dependency := "imap:" + h.c.Mailbox.address()
	if h.c.Breaker != nil {
		if err := h.c.Breaker.Allow(ctx, dependency); err != nil {
			return err
		}
	}
	r, err := h.visitMailbox(ctx)
	err = shorten(err)
	if h.c.Breaker != nil && ctx.Err() == nil {
		if told := h.c.Breaker.Record(ctx, dependency, err); told != nil {
			h.c.Logger.WarnContext(ctx, "circuit breaker not updated", "event", "circuit.record_failed",
				"dependency", dependency, "error", told)
		}
	}
	if err != nil {
		return fmt.Errorf("reading the mailbox %s at %s: %w", h.c.Mailbox.Username, h.c.Mailbox.address(), err)
	}
	return jobs.SetResult(ctx, r)
}

// visitMailbox reads what nobody looked at yet. A message is marked after its
// bounces are stored: what is cut off is read again.
func (h *Handler) visitMailbox(ctx context.Context) (r MailboxResult, err error) {
	c, err := h.c.Mailbox.open(ctx, h.c.TLS, h.c.CommandTimeout)
	if err != nil {
		return r, err
	}
	defer func() { err = c.explain(err) }()
	defer func() { _ = c.Logout() }() // all is done by then
	defer context.AfterFunc(ctx, func() { _ = c.Terminate() })()
	status, err := c.Select(orDefault(h.c.Mailbox.Folder, imap.InboxName), false)
	if err != nil {
		return r, err
	}
	mark := looked
	if !slices.Contains(status.PermanentFlags, imap.TryCreateFlag) && !slices.Contains(status.PermanentFlags, looked) {
		mark = imap.SeenFlag // a server without keywords
	}
	fresh := imap.NewSearchCriteria()
	fresh.WithoutFlags = []string{mark, imap.DeletedFlag}
	fresh.Smaller = maxReport
	ids, err := c.UidSearch(fresh)
	if err != nil {
		return r, err
	}
	r.Left = max(len(ids)-messagesAtOnce, 0)
	var unmoved error
	for _, id := range ids[:min(len(ids), messagesAtOnce)] {
		report, err := h.readMessage(ctx, c.Client, id, mark, &r)
		if err == nil && report && h.c.Mailbox.MoveTo != "" && unmoved == nil {
			unmoved = move(c.Client, id, h.c.Mailbox.MoveTo) // the bounces of the others are taken in all the same
		}
		if err != nil {
			return r, errors.Join(context.Cause(ctx), err)
		}
	}
	if unmoved != nil {
		return r, fmt.Errorf("the reports were read, but cannot be moved to %q (mail.mailbox.move_to): %w",
			h.c.Mailbox.MoveTo, unmoved)
	}
	return r, nil
}

func orDefault(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// readMessage takes in one message, marks it and says whether it was a report.
func (h *Handler) readMessage(ctx context.Context, c *client.Client, id uint32, mark string, r *MailboxResult) (
	report bool, err error) {
	one := new(imap.SeqSet)
	one.AddNum(id)
	bounces, report, err := fetchReport(c, one, &imap.BodySectionName{Peek: true})
	if err != nil {
		return false, err
	}
	for _, b := range bounces {
		if err := h.Bounce(ctx, b); err != nil {
			return false, err
		}
		r.Bounces++
	}
	flags := []any{mark}
	if report {
		r.Reports++
		flags = []any{mark, imap.SeenFlag}
	} else {
		r.Others++
	}
	return report, c.UidStore(one, imap.FormatFlagsOp(imap.AddFlags, true), flags, nil)
}

// fetchReport reads one message. The server may send more than was asked for,
// which must not block the reader of the connection.
func fetchReport(c *client.Client, one *imap.SeqSet, whole *imap.BodySectionName) (bounces []Bounce, report bool,
	err error) {
	messages, done := make(chan *imap.Message), make(chan error, 1)
	go func() { done <- c.UidFetch(one, []imap.FetchItem{whole.FetchItem()}, messages) }()
	seen := false
	for m := range messages {
		body := m.GetBody(whole)
		if body == nil || seen {
			continue
		}
		seen = true
		bounces, err = ParseBounce(body)
		report = err == nil // else somebody's answer, or spam
	}
	return bounces, report, <-done
}

// move puts a message into another folder, which it creates when that is
// missing.
func move(c *client.Client, id uint32, folder string) error {
	one := new(imap.SeqSet)
	one.AddNum(id)
	err := moveTo(c, one, folder)
	if err != nil && c.Create(folder) == nil {
		return moveTo(c, one, folder)
	}
	return err
}

// moveTo is MOVE (RFC 6851), or, where that fails, what every server can do: a
// copy, and a mark that the original may go. Expunging would take all that
// anybody marked: it is left to the owner.
func moveTo(c *client.Client, messages *imap.SeqSet, folder string) error {
	can, err := c.Support("MOVE")
	if err != nil {
		return err
	}
	if can && c.UidMove(messages, folder) == nil {
		return nil
	}
	if err := c.UidCopy(messages, folder); err != nil {
		return err
	}
	return c.UidStore(messages, imap.FormatFlagsOp(imap.AddFlags, true), []any{imap.DeletedFlag}, nil)
}

// mailboxClient is a client and its bounded connection.
type mailboxClient struct {
	*client.Client
	conn *outbound.LimitedConn
}

// explain adds why the connection was given up: the client only says that it
// was closed.
func (c *mailboxClient) explain(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(c.conn.Broken(), err)
}

// open connects, secures the line and signs in.
func (m Mailbox) open(ctx context.Context, base *tls.Config, patience time.Duration) (*mailboxClient, error) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if base != nil {
		secure = base.Clone()
	}
	secure.ServerName = m.Host
	raw, err := (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", m.address())
	if err != nil {
		return nil, err
	}
	if err := raw.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	c, err := m.begin(raw, secure)
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	c.Timeout = patience
	if err := c.Login(m.Username, string(m.Password)); err != nil {
		return nil, errors.Join(fmt.Errorf("signing in: %w", c.explain(err)), c.Terminate())
	}
	return c, nil
}

// begin secures the line and takes the server's greeting.
func (m Mailbox) begin(raw net.Conn, secure *tls.Config) (*mailboxClient, error) {
	conn := raw
	switch m.TLS {
	case TLSNone:
	case TLSStart:
		if err := startTLS(raw); err != nil {
			return nil, err
		}
		// The greeting was read already; the client wants one.
		conn = &greeted{Conn: tls.Client(raw, secure), greeting: strings.NewReader("* OK ready\r\n")}
	default:
		conn = tls.Client(raw, secure)
	}
	bounded := boundIMAP(conn)
	c, err := client.New(bounded)
	if err != nil {
		return nil, errors.Join(bounded.Broken(), err)
	}
	return &mailboxClient{c, bounded}, nil
}

// Summary implements jobs.Summarizer.
func (r MailboxResult) Summary() (s phrase.Summary) {
	s.Say("Read %s {message|messages}: %s {bounce|bounces}, %s other delivery {report|reports}, %s of another kind.",
		r.Bounces+r.Reports+r.Others, r.Bounces, r.Reports, r.Others)
	phrase.Count(&s, r.Left, "%s {message is|messages are} left for the next job.")
	return s
}
