package mail

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// Log shows mail that was sent.
type Log interface {
	Mails(ctx context.Context, q MailQuery, p jobs.Page) (jobs.List[Mail], error)
	Mail(ctx context.Context, id string) (Mail, error)
	// MailAgain is the job that sends it again, to its one recipient.
	MailAgain(ctx context.Context, id string) (jobs.Spec, error)
}

// MailQuery chooses mails; empty fields choose all.
type MailQuery struct {
	Status string // one of mailStates
	Text   string // in recipient or subject
}

// Mail is one message to one recipient.
type Mail struct {
	ID        string    `json:"id"`
	UUID      string    `json:"job"`
	To        string    `json:"to"`
	From      string    `json:"from"`
	Subject   string    `json:"subject"`
	Template  string    `json:"template,omitempty"`
	MessageID string    `json:"message_id,omitempty"`
	Status    string    `json:"status"`
	Answer    string    `json:"answer,omitempty"` // the server's final answer
	Attempts  int       `json:"attempts"`
	At        time.Time `json:"at"`
	// Kept says that its body was kept, so that it can be shown and sent again.
	Kept bool `json:"kept"`
	// Of Mail only:
	HTML      string    `json:"html,omitempty"` // where the body was kept
	PlainText string    `json:"text,omitempty"`
	Problem   string    `json:"problem,omitempty"` // why a kept body cannot be shown
	Tries     []MailTry `json:"tries,omitempty"`   // oldest first
	Others    []Mail    `json:"others,omitempty"`  // its other recipients
}

// MailTry is one try to hand a mail over.
type MailTry struct {
	At         time.Time `json:"at"`
	Attempt    int       `json:"attempt"`
	Status     string    `json:"status"`
	Server     string    `json:"server,omitempty"`
	Code       int       `json:"code,omitempty"` // of SMTP
	Answer     string    `json:"answer,omitempty"`
	DurationMS int64     `json:"duration_ms"`
}

// Templates shows what mails are made from.
type Templates interface {
	Templates(ctx context.Context) ([]MailTemplate, error)
	// PreviewTemplate fills one in with its sample data. One that is not there
	// is jobs.ErrNotFound; one that cannot be filled in has a Problem.
	PreviewTemplate(ctx context.Context, name, locale string) (TemplatePreview, error)
}

// MailTemplate is one template.
type MailTemplate struct {
	Name    string
	Origin  string   // "own" (shipped), "folder" (the operator's), "cms"
	Locales []string // that have a separate text
}

// TemplatePreview is a template filled in.
type TemplatePreview struct {
	Subject, HTML, Text string
	Sample              json.RawMessage // the data that it was filled in with
	Problem             string
}

// Suppressions are the addresses that get no mail.
type Suppressions interface {
	Suppressions(ctx context.Context, p jobs.Page) (jobs.List[Suppression], error)
	Suppress(ctx context.Context, s Suppression) error
	Unsuppress(ctx context.Context, address string) error
}

// Suppression is one address that gets no mail, and why.
type Suppression struct {
	Address   string     `json:"address"`
	Reason    string     `json:"reason"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// The lists of the API.
type (
	MailList        = ops.ListView[Mail]
	SuppressionList = ops.ListView[Suppression]
)

// Ports are what the feature needs; a nil one is not configured.
type Ports struct {
	Log          Log
	Templates    Templates
	Suppressions Suppressions
}

type handlers struct {
	log          Log
	templates    Templates
	suppressions Suppressions
}
