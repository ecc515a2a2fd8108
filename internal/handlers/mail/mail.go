package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/netip"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Send is the type mail.send: 3 attempts, 60, 300 and 900 s apart.
var Send = jobs.Kind[SendPayload]{
	Name: "mail.send",
	Policy: jobs.Policy{
		Confidential: true, // texts of mails hold reset links and codes
		MaxAttempts:  3,
		Timeout:      5 * time.Minute,
		Backoff:      jobs.Steps(60*time.Second, 300*time.Second, 900*time.Second),
	},
}

// Breaker holds jobs back while a dependency is out.
type Breaker interface {
	// Allow returns an error marked by jobs.RetryAfter while it is out.
	Allow(ctx context.Context, dependency string) error
	// Record tells how a use ended; nil is success.
	Record(ctx context.Context, dependency string, err error) error
}

// Config is what a Handler needs. Zero fields get the defaults named.
type Config struct {
	// Site is the CMS. Required.
	Site *cms.Site
	// DB holds cmsjobs_mail*. Required.
	DB *sqlx.DB
	// Transport is used where the CMS says nothing.
	Transport Transport
	// Pin keeps to Transport whatever the CMS says; only the sender's name and
	// address are still the CMS's.
	Pin bool
	// AllowPrivate are ranges where a mail host may lie that only the CMS's
	// settings name. Public addresses always may.
	AllowPrivate []netip.Prefix
	// OneRecipient refuses a mail whose to, cc or bcc is one text with several
	// addresses.
	OneRecipient bool
	// Capture is a folder: every mail becomes a file there, whatever the CMS's
	// settings say, and no mail is sent.
	Capture string
	// Folder of the driver "files".
	Folder string
	// TLS is the base of the client's TLS configuration: own roots, minimum
	// version. nil is the system's roots.
	TLS *tls.Config
	// DKIM signs every mail when set; see LoadDKIM.
	DKIM *DKIM
	// Templates are ours (templates.Mail()); TemplateFolder holds the operator's
	// own, which win, file by file. "" is none.
	Templates      fs.FS
	TemplateFolder string
	// Store is where attachments named by key lie; nil is none.
	Store storage.Store
	// AttachmentRoots are the folders that attachments may come from.
	AttachmentRoots []string
	// MaxAttachmentBytes of one mail together, before encoding; 25 MiB.
	MaxAttachmentBytes int64
	// MaxRecipients of one SMTP transaction; 100, which RFC 5321 grants.
	MaxRecipients int
	// CommandTimeout is the wait for one answer of the server, 60 s;
	// AnswerTimeout the wait after the final dot, 10 min (RFC 5321, 4.5.3.2.6),
	// both bounded by the job's own.
	CommandTimeout, AnswerTimeout time.Duration
	// IdleConnections kept open for a burst, 4, and for how long, 15 s.
	IdleConnections int
	IdleTimeout     time.Duration
	// ResendUnknown sends again where a server died between the final dot and
	// its answer: some recipients then get a mail twice, none none.
	ResendUnknown bool
	// Limits on sending, shared by all workers on DB.
	Limits Limits
	// InlineWait is how long a job waits for a limit before it is released; 1 s.
	InlineWait time.Duration
	// MaxAge by template: an older mail is dropped; 0 is never. Templates that
	// are not named have DefaultMaxAge.
	MaxAge map[string]time.Duration
	// HardBounceExpiry is how long a bounced address gets no mail; 30 days.
	HardBounceExpiry time.Duration
	// KeepPayload stores what was sent, so that it can be sent again.
	KeepPayload bool
	// Mailbox is read by mail.bounces; without a Host there is no such type.
	Mailbox Mailbox
	// EmailLogs writes a row of the CMS's own mail log for each accepted mail.
	EmailLogs bool
	// VerifyWebhook checks the signature of a bounce webhook; nil refuses all.
	VerifyWebhook WebhookVerifier
	// Breaker may be nil: then nothing is held back.
	Breaker Breaker
	// Counted receives of each try how many recipients ended in a state, for
	// metrics; it must not block. nil is nobody.
	Counted func(state Status, recipients int)
	// Enqueue is used by Resend.
	Enqueue jobs.Enqueuer
	// Now and Logger are required.
	Now    func() time.Time
	Logger *slog.Logger
}

// DefaultMaxAge drops a password reset after an hour: its link is dead then,
// and a backlog must not flood people with such mails.
func DefaultMaxAge() map[string]time.Duration {
	return map[string]time.Duration{"password-reset": time.Hour}
}

// Handler sends mail. It is safe for concurrent use.
type Handler struct {
	c         Config
	templates *Templates
	pool      *pool
	ledger    ledger
	limiter   *limiter
}

// New checks c and returns a Handler. Close it at the end.
func New(c Config) (*Handler, error) {
	if c.Site == nil || c.DB == nil || c.Now == nil || c.Logger == nil || c.Templates == nil {
		return nil, errors.New("mail: Site, DB, Templates, Now and Logger are required")
	}
	c.setDefaults()
	if err := c.Limits.check(); err != nil {
		return nil, err
	}
	if c.Mailbox.Host != "" {
		if err := c.Mailbox.check(); err != nil {
			return nil, err
		}
	}
	templates, err := NewTemplates(c.Templates, c.TemplateFolder)
	if err != nil {
		return nil, err
	}
	h := &Handler{c: c, templates: templates, ledger: newLedger(c.DB, c.Now)}
	h.pool = newPool(c)
	h.limiter = newLimiter(c.DB, c.Limits)
	return h, nil
}

func (c *Config) setDefaults() {
	setDefault(&c.MaxAttachmentBytes, 25<<20)
	setDefault(&c.MaxRecipients, 100)
	setDefault(&c.CommandTimeout, time.Minute)
	setDefault(&c.AnswerTimeout, 10*time.Minute)
	setDefault(&c.IdleConnections, 4)
	setDefault(&c.IdleTimeout, 15*time.Second)
	setDefault(&c.InlineWait, time.Second)
	setDefault(&c.HardBounceExpiry, 30*24*time.Hour)
	setDefault(&c.Transport.SendmailPath, "/usr/sbin/sendmail")
	ages := DefaultMaxAge()
	maps.Copy(ages, c.MaxAge)
	c.MaxAge = ages
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Register adds mail.send and its alias, and mail.bounces where there is a
// mailbox to read.
func (h *Handler) Register(r *jobs.Registry) {
	if h.c.Mailbox.Host != "" {
		jobs.Handle(r, ReadBounces, h.readBounces)
	}
	jobs.Handle(r, Send, h.send)
	jobs.Restrict(r, Send, jobs.Restriction[SendPayload]{Refuse: h.refuse})
	r.Alias("email.send", Send.Name)
}

// Close ends idle connections.
func (h *Handler) Close() { h.pool.close() }

// Transport says how mail is sent now, for doctor and the test page.
func (h *Handler) Transport(ctx context.Context) (Transport, error) {
	settings, err := h.c.Site.Settings(ctx)
	if err != nil {
		return Transport{}, err
	}
	return h.transport(settings)
}

func (h *Handler) transport(settings cms.Settings) (Transport, error) {
	if h.c.Capture != "" { // before the CMS's settings are looked at: a wrong one must not matter here
		t, err := resolveTransport(nil, nil, Transport{Driver: DriverFiles})
		t.FromName = settings.String("email_from_name", h.c.Site.Env.String("MAIL_FROM_NAME", h.c.Transport.FromName))
		t.FromAddress = settings.String("email_from_address", h.c.Site.Env.String("MAIL_FROM_ADDRESS", h.c.Transport.FromAddress))
		return t, err
	}
	env := h.c.Site.Env
	if h.c.Pin {
		settings = only(settings, "email_from_name", "email_from_address")
		env = only(env, "MAIL_FROM_NAME", "MAIL_FROM_ADDRESS")
	}
	t, err := resolveTransport(settings, env, h.c.Transport)
	if err != nil {
		return t, fmt.Errorf("choosing how to send mail: %w", err)
	}
	return t, nil
}

// only leaves the named keys.
func only[M ~map[string]string](m M, keys ...string) M {
	few := M{}
	for _, key := range keys {
		if value, set := m[key]; set {
			few[key] = value
		}
	}
	return few
}
