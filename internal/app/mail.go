package app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/dkim"
	"github.com/cmsjobs/cmsjobs/internal/handlers/webhook"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/templates"
)

// Mailed counts recipients for the metrics.
func (r *Services) Mailed(state mail.Status, recipients int) {
	if r.Metrics != nil {
		r.Metrics.Mailed(string(state), recipients)
	}
}

// bounces takes POST /api/v1/mail/bounces, signed as Standard Webhooks says.
func bounces(h *mail.Handler, log func(error)) http.Handler {
	return mailReports("the signature is missing or wrong (mail.bounce_secret)", log,
		func(q *http.Request, body []byte) (int, error) {
			return h.HandleBounceWebhook(q.Context(), q.Header, body)
		})
}

// serviceReports takes what a mail service reports at /api/v1/mail/bounces/SERVICE, with
// the password that stands in the address.
func serviceReports(h *mail.Handler, service string, log func(error)) http.Handler {
	return mailReports("the password is missing or wrong: the address is https://cmsjobs:SECRET@… with "+
		"mail.bounce_secret", log, func(q *http.Request, body []byte) (int, error) {
		_, password, _ := q.BasicAuth()
		return h.HandleServiceWebhook(q.Context(), service, password, body)
	})
}

func mailReports(refusal string, log func(error), take func(*http.Request, []byte) (int, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "POST reports of bounces here", http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, 1<<20))
		if err != nil {
			http.Error(w, "the request is larger than 1 MiB, or broke off", http.StatusRequestEntityTooLarge)
			return
		}
		n, err := take(q, body)
		switch {
		case errors.Is(err, mail.ErrUnsigned):
			http.Error(w, refusal, http.StatusUnauthorized)
		case err != nil:
			log(err)
			http.Error(w, "the reports could not be read or stored", http.StatusBadRequest)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, "{\"taken\":%d}\n", n)
		}
	})
}

func mailHandler(registry *jobs.Registry, r *Services) error {
	c := r.Config.Mail
	m := mail.Config{
		Site: r.Site, DB: r.OwnDB, Templates: templates.Mail(), TemplateFolder: c.Templates, AttachmentRoots: c.Roots,
		MaxAttachmentBytes: int64(c.MaxSize), IdleConnections: r.Config.Queue.Concurrency, ResendUnknown: c.Resend,
		KeepPayload: c.KeepBody, Payloads: registry, EmailLogs: c.CMSLog, CommandTimeout: c.Timeout,
		Pin: c.Pin, AllowPrivate: c.Networks(), OneRecipient: c.OneRecipient, Limits: mailLimits(c.Rate),
		MaxAge: c.MaxAge, HardBounceExpiry: c.Suppress, Breaker: r.Breakers, Counted: r.Mailed, Enqueue: r, Now: r.Now,
		Logger: r.Log,
		Transport: mail.Transport{Driver: c.Driver, Host: c.Host, Port: c.Port, Username: c.Username,
			Password: mail.Secret(c.Password.Reveal()),
			TLS:      c.Encryption, EHLO: c.EHLO, FromName: c.FromName, FromAddress: c.From, SendmailPath: c.Sendmail,
			Region: c.Region, Endpoint: c.Endpoint},
	}
	if box := c.Mailbox; box.Host != "" {
		m.Mailbox = mail.Mailbox{Host: box.Host, Port: box.Port, Username: box.Username,
			Password: mail.Secret(box.Password.Reveal()),
			TLS:      box.Encryption, Folder: box.Folder, MoveTo: box.MoveTo}
	}
	if !c.Verify {
		m.TLS = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the owner said so: mail.verify
	}
	if c.Driver == "files" {
		m.Capture = c.Dir
	}
	if err := r.finishMail(&m); err != nil {
		return UsageError{Err: err}
	}
	h, err := mail.New(m)
	if err != nil {
		return errors.Join(errors.New("setting mail up"), err)
	}
	h.Register(registry)
	r.Handlers.Mail = h
	return nil
}

// mailLimits are the configuration's, a domain's for the minute.
func mailLimits(c config.MailRate) mail.Limits {
	l := mail.Limits{All: mail.Rate{PerSecond: c.PerSecond, PerMinute: c.PerMinute, PerHour: c.PerHour,
		PerDay: c.PerDay},
		Domains: map[string]mail.Rate{"*": {PerMinute: c.PerDomain}}}
	for domain, n := range c.Domains {
		l.Domains[strings.ToLower(domain)] = mail.Rate{PerMinute: n}
	}
	return l
}

// finishMail adds what has to be opened: the key of DKIM, the bucket that
// attachments may lie in, the check of bounces that others report.
func (r *Services) finishMail(m *mail.Config) (err error) {
	c := r.Config.Mail
	if c.DKIM.Domain != "" {
		if m.DKIM, err = dkim.Load(c.DKIM.Domain, c.DKIM.Selector, c.DKIM.KeyFile); err != nil {
			return fmt.Errorf("mail.dkim: %w", err)
		}
	}
	if r.Config.Storage.S3.Bucket != "" {
		if m.Store, err = r.bucket(); err != nil {
			return fmt.Errorf("storage.s3: %w", err)
		}
	}
	if secret := c.Bounce.Reveal(); secret != "" {
		if m.VerifyWebhook, err = webhook.Verifier(secret, r.Now); err != nil {
			return fmt.Errorf("mail.bounce_secret: %w", err)
		}
		m.BouncePassword = mail.Secret(secret)
	}
	if len(m.AttachmentRoots) == 0 && r.Site.Root != "" {
		m.AttachmentRoots = []string{r.uploads()} // storage also holds logs, sessions and backups
	}
	return nil
}
