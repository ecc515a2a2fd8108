package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/outbound"
)

// The services, as mail.driver names them.
const (
	Postmark = "postmark"
	Mailgun  = "mailgun"
	Brevo    = "brevo"
	SES      = "ses"
)

// Names are all services.
func Names() []string { return []string{Postmark, Mailgun, Brevo, SES} }

// MaxRecipients is how many one mail may have at every service (Postmark's and
// Amazon's limit).
const MaxRecipients = 50

// Account is an account with a service.
type Account struct {
	// Service is one of Names.
	Service string
	// Key is the secret: Postmark's server token, Mailgun's and Brevo's key, the secret
	// access key of Amazon.
	Key string
	// User is Mailgun's sending domain, and Amazon's access key id.
	User string
	// Region is Amazon's, such as eu-west-1.
	Region string
	// Endpoint replaces the service's own address, such as https://api.eu.mailgun.net;
	// "" is the service's own.
	Endpoint string
}

// Mail is one message and who gets it.
type Mail struct {
	From       string
	Recipients []string // 1 to MaxRecipients mailboxes
	Text       []byte   // the message with its header
	ID         string   // its Message-ID, without < and >
}

// Error is an answer that is no acceptance, or none at all.
type Error struct {
	Code int    // of HTTP; 0 when there was no answer
	Said string // the service's words, or what went wrong
	// Refused says that the mail itself is refused for good. Else the service takes none
	// now: its key is wrong, it is out, or it was asked too often.
	Refused bool
	// NoMailbox says that it was refused because the recipients get no mail any more.
	NoMailbox bool
	// Unclear says that the whole request was sent and no answer came: the mail may have
	// been taken.
	Unclear bool
	// Wait is how long the service asked us to wait; 0 when it did not.
	Wait time.Duration
}

// Error says what happened.
func (e *Error) Error() string {
	if e.Code == 0 {
		return e.Said
	}
	return fmt.Sprintf("HTTP %d: %s", e.Code, e.Said)
}

// Sender hands mails to one account.
type Sender struct {
	a      Account
	base   string
	client *http.Client
	now    func() time.Time
}

// New checks an account. client bounds what is read and how long it takes.
func New(a Account, client *http.Client, now func() time.Time) (*Sender, error) {
	s := &Sender{a: a, client: client, now: now, base: strings.TrimRight(a.Endpoint, "/")}
	own := map[string]string{Postmark: "https://api.postmarkapp.com", Mailgun: "https://api.mailgun.net",
		Brevo: "https://api.brevo.com", SES: "https://email." + a.Region + ".amazonaws.com"}[a.Service]
	switch {
	case own == "":
		return nil, unknown(a.Service)
	case a.Key == "":
		return nil, fmt.Errorf("no key is set for %s: set mail.password", a.Service)
	case a.User == "" && a.Service == Mailgun:
		return nil, errors.New("no sending domain is set for mailgun: set mail.username")
	case a.User == "" && a.Service == SES:
		return nil, errors.New("no access key id is set for ses: set mail.username")
	case a.Region == "" && a.Service == SES:
		return nil, errors.New("no region is set for ses: set mail.region")
	}
	if s.base == "" {
		s.base = own
	}
	at, err := url.Parse(s.base)
	if err != nil || at.Host == "" || at.User != nil || at.Scheme != "https" && at.Scheme != "http" {
		return nil, fmt.Errorf("the address %.100q of %s is none of https", s.base, a.Service)
	}
	return s, nil
}

// Base is the service's address.
func (s *Sender) Base() string { return s.base }

func unknown(service string) error {
	return fmt.Errorf("%q is no mail service that is known here: %s are", service, strings.Join(Names(), ", "))
}

// Host is what must answer: a host, with its port where it has one.
func (s *Sender) Host() string {
	at, err := url.Parse(s.base)
	if err != nil {
		return s.base // New read it
	}
	return at.Host
}

// Send hands a mail over and returns the service's name for it. An error is an *Error.
func (s *Sender) Send(ctx context.Context, m Mail) (id string, err error) {
	var r *http.Request
	switch s.a.Service {
	case Mailgun:
		r, err = s.mailgun(ctx, m)
	case SES:
		r, err = s.ses(ctx, m)
	case Postmark:
		r, err = s.postmark(ctx, m)
	default:
		r, err = s.brevo(ctx, m)
	}
	if err != nil {
		return "", &Error{Said: fmt.Sprintf("the mail cannot be handed to %s: %v", s.a.Service, err), Refused: true}
	}
	return s.ask(r)
}

// ask sends a request once and reads its answer.
func (s *Sender) ask(r *http.Request) (id string, err error) {
	var sent atomic.Bool
	trace := &httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) { sent.Store(i.Err == nil) }}
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
	r.Header.Set("Accept", "application/json")
	answer, err := s.client.Do(r)
	if err != nil {
		return "", &Error{Said: fmt.Sprintf("asking %s: %v", s.Host(), outbound.WithoutAddress(err)),
			Unclear: sent.Load()}
	}
	defer answer.Body.Close()
	body, err := outbound.ReadBody(answer)
	if err != nil && answer.StatusCode/100 == 2 {
		return "", &Error{Said: fmt.Sprintf("reading the answer of %s: %v", s.Host(), err), Unclear: true}
	}
	said := read(body)
	if answer.StatusCode/100 == 2 {
		return strings.Trim(said.id(), "<>"), nil
	}
	wait, _ := outbound.RetryAfter(answer.Header.Get("Retry-After"), s.now())
	e := &Error{Code: answer.StatusCode, Said: said.why(answer), Wait: wait}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusPaymentRequired, http.StatusNotFound,
		http.StatusRequestTimeout, http.StatusTooManyRequests:
	default:
		e.Refused = answer.StatusCode/100 == 4
	}
	e.NoMailbox = s.a.Service == Postmark && said.ErrorCode == inactive
	return "", e
}

// inactive is Postmark's code for recipients that bounced or complained before.
const inactive = 406

// said is what a service answers; each fills its own fields.
type said struct {
	ID, MessageID string // Mailgun; Postmark, Brevo and Amazon ("messageId", "MessageID")
	Message       string
	Code          any // Brevo's
	ErrorCode     int // Postmark's
}

func read(body []byte) (s said) {
	if json.Unmarshal(body, &s) != nil { // some gateways answer with HTML
		s = said{Message: string(body[:min(len(body), 300)])}
	}
	return s
}

func (s said) id() string {
	if s.MessageID != "" {
		return s.MessageID
	}
	return s.ID
}

func (s said) why(answer *http.Response) string {
	words := s.Message
	if kind := answer.Header.Get("X-Amzn-Errortype"); kind != "" {
		words = strings.TrimSpace(kind + " " + words)
	}
	if code, text := s.Code.(string); text && code != "" {
		words = strings.TrimSpace(code + ": " + words)
	}
	if words == "" {
		return http.StatusText(answer.StatusCode)
	}
	return words
}

// asJSON is a POST of a value.
func (s *Sender) asJSON(ctx context.Context, path string, value any) (*http.Request, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	return r, nil
}
