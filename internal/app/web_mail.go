package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/template"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	mailpage "github.com/cmsjobs/cmsjobs/internal/web/feature/mail"
)

// WebMail shows the log of mails, the templates and the suppressions.
type WebMail struct{ Handler *mail.Handler }

func (m WebMail) Mails(ctx context.Context, q mailpage.MailQuery, p jobs.Page) (jobs.List[mailpage.Mail], error) {
	f := mail.LogFilter{Text: q.Text}
	if q.Status != "" {
		f.Statuses = []mail.Status{mail.Status(q.Status)}
	}
	list, err := m.Handler.Log(ctx, f, p)
	out := jobs.List[mailpage.Mail]{Total: list.Total, Next: list.Next}
	for _, e := range list.Items {
		out.Items = append(out.Items, mailOf(e))
	}
	return out, err
}

func mailOf(e mail.Entry) mailpage.Mail {
	return mailpage.Mail{ID: strconv.FormatInt(e.ID, 10), UUID: e.UUID, To: e.Recipient, From: e.Sender,
		Subject: e.Subject, Template: e.Template, MessageID: e.MessageID,
		Status: string(e.Status), Answer: e.Answer, Attempts: e.Attempt, At: e.UpdatedAt, Kept: e.HasPayload}
}

func (m WebMail) entry(ctx context.Context, id string) (mail.Entry, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 1 {
		return mail.Entry{}, fmt.Errorf("%q is no number of a mail: %w", id, jobs.ErrNotFound)
	}
	list, err := m.Handler.Log(ctx, mail.LogFilter{ID: n}, jobs.Page{Limit: 1})
	if err != nil {
		return mail.Entry{}, err
	}
	if len(list.Items) == 0 {
		return mail.Entry{}, fmt.Errorf("no mail %s: %w", id, jobs.ErrNotFound)
	}
	return list.Items[0], nil
}

// othersShown bounds the other recipients of a mail on its page.
const othersShown = 100

func (m WebMail) Mail(ctx context.Context, id string) (mailpage.Mail, error) {
	e, err := m.entry(ctx, id)
	if err != nil {
		return mailpage.Mail{}, err
	}
	one := mailOf(e)
	if one.Tries, err = m.tries(ctx, e); err != nil {
		return one, err
	}
	others, err := m.Handler.Log(ctx, mail.LogFilter{UUID: e.UUID}, jobs.Page{Limit: othersShown})
	if err != nil {
		return one, err
	}
	for _, other := range others.Items {
		if other.ID != e.ID {
			one.Others = append(one.Others, mailOf(other))
		}
	}
	if !e.HasPayload {
		return one, nil
	}
	body, err := m.Handler.Body(ctx, e.UUID)
	if err != nil { // its template went, say: the rest is worth showing
		one.Problem = err.Error()
	}
	one.HTML, one.PlainText = body.HTML, body.Text
	return one, nil
}

func (m WebMail) tries(ctx context.Context, e mail.Entry) ([]mailpage.MailTry, error) {
	list, err := m.Handler.Attempts(ctx, e.UUID, e.Recipient)
	var out []mailpage.MailTry
	for _, t := range list {
		out = append(out, mailpage.MailTry{At: t.At, Attempt: t.Attempt, Status: string(t.Status), Server: t.Host,
			Code: t.Code, Answer: t.Answer, DurationMS: t.DurationMS})
	}
	return out, err
}

func (m WebMail) MailAgain(ctx context.Context, id string) (jobs.Spec, error) {
	e, err := m.entry(ctx, id)
	if err != nil {
		return jobs.Spec{}, err
	}
	n, err := m.Handler.Again(ctx, e.UUID, e.Recipient)
	if errors.Is(err, mail.ErrNotKept) {
		err = fmt.Errorf("%w: %w", err, jobs.ErrConflict)
	}
	return n, err
}

func (m WebMail) Templates(context.Context) ([]mailpage.MailTemplate, error) {
	list, err := m.Handler.TemplateList()
	var out []mailpage.MailTemplate
	for _, t := range list {
		out = append(out, mailpage.MailTemplate{Name: t.Name, Origin: t.Origin, Locales: t.Locales})
	}
	return out, err
}

func (m WebMail) PreviewTemplate(ctx context.Context, name, locale string) (mailpage.TemplatePreview, error) {
	var p mailpage.TemplatePreview
	sample, err := m.Handler.Sample(name)
	if errors.Is(err, template.ErrNoTemplate) {
		return p, errors.Join(jobs.ErrNotFound, err)
	}
	var content template.Content
	if err == nil {
		content, err = m.Handler.Preview(ctx, name, locale, sample)
	}
	if err != nil {
		p.Problem = err.Error()
	}
	p.Subject, p.HTML, p.Text = content.Subject, content.HTML, content.Text
	p.Sample, err = json.Marshal(sample)
	return p, err
}

func (m WebMail) Suppressions(ctx context.Context, p jobs.Page) (jobs.List[mailpage.Suppression], error) {
	limit := p.Limit
	if limit <= 0 {
		limit = 50
	}
	list, err := m.Handler.Suppressions(ctx, p.Cursor, limit)
	out := jobs.List[mailpage.Suppression]{Total: -1}
	for _, s := range list {
		x := mailpage.Suppression{Address: s.Recipient, Reason: s.Reason, CreatedAt: s.CreatedAt}
		if !s.ExpiresAt.IsZero() {
			x.ExpiresAt = &s.ExpiresAt
		}
		out.Items = append(out.Items, x)
	}
	if len(list) == limit {
		out.Next = list[limit-1].Recipient
	}
	return out, err
}

func (m WebMail) Suppress(ctx context.Context, s mailpage.Suppression) error {
	var until time.Time
	if s.ExpiresAt != nil {
		until = *s.ExpiresAt
	}
	return m.Handler.Suppress(ctx, s.Address, s.Reason, "by hand", until)
}

func (m WebMail) Unsuppress(ctx context.Context, address string) error {
	was, err := m.Handler.Unsuppress(ctx, address)
	if err == nil && !was {
		err = fmt.Errorf("%s is not suppressed: %w", address, jobs.ErrNotFound)
	}
	return err
}
