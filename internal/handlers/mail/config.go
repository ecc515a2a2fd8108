package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"time"

	_ "github.com/emersion/go-message/charset" // bounces may be in any charset
	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/dkim"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

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
	DKIM *dkim.Key
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
	// Payloads encrypts what is stored, and decrypts it; nil stores it as it is.
	Payloads Payloads
	// Mailbox is read by mail.bounces; without a Host there is no such type.
	Mailbox Mailbox
	// EmailLogs writes a row of the CMS's own mail log for each accepted mail.
	EmailLogs bool
	// BouncePassword is what mail services send with their reports; "" refuses all.
	BouncePassword Secret
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

// WebhookVerifier checks that a request was signed by who knows the secret
// (webhook.Verifier makes one).
type WebhookVerifier func(header http.Header, body []byte) error

// Mailbox is where the reports of mail that came back arrive: the mailbox of
// the sender's address, read by IMAP (RFC 3501).
type Mailbox struct {
	Host     string
	Port     int // 993, or 143 without TLS from the first byte
	Username string
	Password Secret
	TLS      string // TLSImplicit, the default, TLSStart, or TLSNone: for this host only
	Folder   string // INBOX when empty
	// MoveTo is the folder that read reports are moved to. "" leaves them,
	// marked as read. Other messages stay unread, where the server knows
	// keywords; they are never moved.
	MoveTo string
}

func (m Mailbox) check() error {
	if ip := net.ParseIP(m.Host); m.TLS == TLSNone && m.Host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return errors.New("mail.mailbox: its password would cross the network in clear; use tls or starttls")
	}
	if m.Username == "" || m.Password == "" {
		return errors.New("mail.mailbox: username and password are needed")
	}
	return nil
}
