package mail

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/wneessen/go-mail"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/dkim"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/template"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// letter reads a payload. What is wrong with it is permanent.
func (h *Handler) letter(ctx context.Context, uuid string, p SendPayload, settings cms.Settings, t Transport) (letter,
	error) {
	l := letter{uuid: uuid, separate: p.Separate, dkim: h.c.DKIM}
	var err error
	to, toAdministrators := p.To.named()
	if l.to, err = to.parse(); err != nil {
		return l, jobs.Permanent(err)
	}
	if l.cc, err = p.CC.parse(); err != nil {
		return l, jobs.Permanent(err)
	}
	if l.bcc, err = p.BCC.parse(); err != nil {
		return l, jobs.Permanent(err)
	}
	if l.replyTo, err = p.ReplyTo.parse(); err != nil {
		return l, jobs.Permanent(err)
	}
	if toAdministrators || len(l.to)+len(l.cc)+len(l.bcc) == 0 {
		list, err := administrators(settings)
		if err != nil {
			return l, jobs.Permanent(err)
		}
		l.to = append(l.to, list...)
	}
	if l.from, err = sender(string(p.From), t); err != nil {
		return l, jobs.Permanent(err)
	}
	if l.unsubscribe, err = unsubscribeAddresses(p.Unsubscribe); err != nil {
		return l, jobs.Permanent(err)
	}
	if l.content, err = h.content(ctx, p, settings); err != nil {
		return l, err
	}
	l.files, err = h.attachments(ctx, p.Attachments)
	return l, err
}

// administrators are who gets a mail that is for them: the CMS's admin_email.
func administrators(settings cms.Settings) ([]address.Address, error) {
	list := settings.List("admin_email")
	if len(list) == 0 {
		return nil, fmt.Errorf("the mail is for the administrators, and the CMS's setting admin_email is empty")
	}
	return Addresses(list).parse()
}

func sender(from string, t Transport) (address.Address, error) {
	if from != "" {
		return address.Parse(from)
	}
	if t.FromAddress == "" {
		return address.Address{}, fmt.Errorf("no sender is set: enter one in the CMS's e-mail settings or in mail.from")
	}
	sent, err := address.Parse(t.FromAddress)
	if err != nil {
		return sent, err
	}
	if err := address.CheckLine(t.FromName); err != nil {
		return sent, fmt.Errorf("the sender's name %w", err)
	}
	sent.Name = t.FromName
	return sent, nil
}

// message makes the MIME text of a group's message.
func (l letter) message(g group, date time.Time) message {
	m := mail.NewMsg(mail.WithNoDefaultUserAgent(), mail.WithEncoding(mail.EncodingQP))
	m.FromMailAddress(l.from.Header())
	for _, a := range g.to {
		m.AddToMailAddress(a.Header())
	}
	for _, a := range g.cc {
		m.AddCcMailAddress(a.Header())
	}
	for _, a := range l.replyTo {
		m.ReplyToMailAddress(append(m.GetReplyTo(), a.Header())...)
	}
	if len(g.to)+len(g.cc) == 0 { // RFC 5322 wants some recipient to be seen
		m.SetGenHeaderPreformatted("To", "undisclosed-recipients:;")
	}
	m.Subject(l.content.Subject)
	m.SetMessageIDWithValue(l.messageID(g))
	m.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no out-of-office answers
	l.unsubscribeHeaders(m)
	m.SetDateWithValue(date)
	l.bodies(m)
	for _, f := range l.files {
		options := []mail.FileOption{mail.WithFileContentType(mail.ContentType(f.contentType))}
		if f.contentID != "" {
			m.EmbedReadSeeker(f.name, bytes.NewReader(f.content),
				append(options, mail.WithFileContentID(f.contentID))...)
			continue
		}
		m.AttachReadSeeker(f.name, bytes.NewReader(f.content), options...)
	}
	if l.dkim != nil {
		return dkim.Message{WriterTo: m, Key: l.dkim, Listed: len(l.unsubscribe) > 0}
	}
	return m
}

func (l letter) bodies(m *mail.Msg) {
	m.SetBodyString(mail.TypeTextPlain, l.content.Text)
	if l.content.HTML != "" { // the last alternative is the best one (RFC 2046, 5.1.4)
		m.AddAlternativeString(mail.TypeTextHTML, l.content.HTML)
	}
}

// content is what a mail says: from a template, or the payload's own body.
func (h *Handler) content(ctx context.Context, p SendPayload, settings cms.Settings) (template.Content, error) {
	look := h.Branding(settings)
	var c template.Content
	var err error
	if p.Template != "" {
		c, err = h.Fill(ctx, p.Template, p.Locale, p.Data, settings)
	} else {
		c = ownBody(p, look)
	}
	if err != nil {
		return c, err
	}
	if p.Subject != "" {
		c.Subject = p.Subject
		if p.Data != nil {
			c.Subject = template.FillIn(p.Subject, p.Data, look, false)
		}
	}
	if err := address.CheckLine(c.Subject); err != nil {
		return c, jobs.Permanent(fmt.Errorf("the subject %w", err))
	}
	if len(c.Subject) > maxSubject {
		return c, jobs.Permanent(fmt.Errorf("the subject has more than %d bytes", maxSubject))
	}
	return c, nil
}

var htmlTag = regexp.MustCompile(
	`(?i)<(!doctype|html|body|head|p|br|div|span|table|tr|td|a|b|i|u|strong|em|h[1-6]|ul|ol|li|img|hr|blockquote|pre)\b[^>]*>`)

// ownBody is the payload's body, its {{ variables }} replaced where it has data.
func ownBody(p SendPayload, look template.Branding) template.Content {
	html := p.Format == "html" || (p.Format == "" && htmlTag.MatchString(p.Body))
	body, text := p.Body, p.Text
	if p.Data != nil {
		body = template.FillIn(body, p.Data, look, html)
		text = template.FillIn(text, p.Data, look, false)
	}
	switch {
	case html && text == "":
		return template.Content{HTML: body, Text: template.PlainText(body)}
	case html:
		return template.Content{HTML: body, Text: text}
	case body == "":
		return template.Content{Text: text}
	}
	return template.Content{Text: body}
}
