package mail

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/provider"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/template"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Handler sends mail. It is safe for concurrent use.
type Handler struct {
	*template.Library
	c       Config
	pool    *pool
	ledger  ledger
	limiter *limiter
	client  *http.Client // of mail services
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
	templates, err := template.NewSet(c.Templates, c.TemplateFolder)
	if err != nil {
		return nil, err
	}
	h := &Handler{Library: template.NewLibrary(c.Site, templates, c.Now), c: c, ledger: newLedger(c.DB, c.Now)}
	h.pool = newPool(c)
	h.limiter = newLimiter(c.DB, c.Limits)
	h.client = serviceClient(c)
	return h, nil
}

// Close ends idle connections.
func (h *Handler) Close() {
	h.pool.close()
	h.client.CloseIdleConnections()
}

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
		t.FromAddress = settings.String("email_from_address", h.c.Site.Env.String("MAIL_FROM_ADDRESS",
			h.c.Transport.FromAddress))
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

func (h *Handler) driver(t Transport) driver {
	switch t.Driver {
	case DriverSMTP:
		return &smtpDriver{pool: h.pool, transport: t}
	case provider.Postmark, provider.Mailgun, provider.Brevo, provider.SES:
		return serviceDriver{account: t.account(), client: h.client, now: h.c.Now}
	case DriverSendmail:
		return sendmailDriver{path: t.SendmailPath}
	case DriverFiles:
		folder := h.c.Folder
		if h.c.Capture != "" {
			folder = h.c.Capture
		}
		return filesDriver{folder: folder, now: h.c.Now}
	}
	return logDriver{log: h.c.Logger}
}

// Register adds mail.send and its alias, and mail.bounces where there is a
// mailbox to read.
func (h *Handler) Register(r *jobs.Registry) {
	if h.c.Mailbox.Host != "" {
		jobs.Handle(r, ReadBounces, h.readBounces)
		jobs.Results[MailboxResult](r, ReadBounces)
	}
	jobs.Handle(r, Send, h.send)
	jobs.Results[Result](r, Send)
	jobs.Restrict(r, Send, jobs.Restriction[SendPayload]{Refuse: h.refuse})
	r.Alias("email.send", Send.Name)
}
