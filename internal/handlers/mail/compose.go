package mail

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/wneessen/go-mail"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// letter is a mail before it is known which server gets it: all texts
// rendered, all addresses checked, all attachments read.
type letter struct {
	uuid        string
	from        Address
	to, cc, bcc []Address
	replyTo     []Address
	content     Content
	files       []file
	separate    bool
	dkim        *DKIM
	unsubscribe []string // addresses of List-Unsubscribe
}

// group is the recipients that get one and the same message.
type group struct {
	id         string // "" for all, else the one recipient's key
	to, cc     []Address
	recipients []Address // all of the envelope
}

// letter reads a payload. What is wrong with it is permanent.
func (h *Handler) letter(ctx context.Context, uuid string, p SendPayload, settings cms.Settings, t Transport) (letter, error) {
	l := letter{uuid: uuid, separate: p.Separate, dkim: h.c.DKIM}
	var err error
	if l.to, err = p.To.parse(); err != nil {
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
	if len(l.to)+len(l.cc)+len(l.bcc) == 0 {
		if l.to, err = administrators(settings); err != nil {
			return l, jobs.Permanent(err)
		}
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

// administrators are who gets a mail that names nobody: the CMS's admin_email.
func administrators(settings cms.Settings) ([]Address, error) {
	list := settings.List("admin_email")
	if len(list) == 0 {
		return nil, fmt.Errorf("the mail has no recipient, and the CMS's setting admin_email is empty")
	}
	return Addresses(list).parse()
}

func sender(from string, t Transport) (Address, error) {
	if from != "" {
		return ParseAddress(from)
	}
	if t.FromAddress == "" {
		return Address{}, fmt.Errorf("no sender is set: enter one in the CMS's e-mail settings or in mail.from")
	}
	address, err := ParseAddress(t.FromAddress)
	if err != nil {
		return address, err
	}
	if err := checkLine(t.FromName); err != nil {
		return address, fmt.Errorf("the sender's name %w", err)
	}
	address.Name = t.FromName
	return address, nil
}

// groups says who gets which message, each recipient once.
func (l letter) groups() []group {
	seen := map[string]bool{}
	once := func(list []Address) (fresh []Address) {
		for _, a := range list {
			if !seen[a.key()] {
				seen[a.key()] = true
				fresh = append(fresh, a)
			}
		}
		return fresh
	}
	if !l.separate {
		to, cc, bcc := once(l.to), once(l.cc), once(l.bcc)
		return []group{{to: to, cc: cc, recipients: append(append(append([]Address{}, to...), cc...), bcc...)}}
	}
	var groups []group
	for _, a := range once(append(append(append([]Address{}, l.to...), l.cc...), l.bcc...)) {
		groups = append(groups, group{id: a.key(), to: []Address{a}, recipients: []Address{a}})
	}
	return groups
}

// messageID is the same for every copy of a group's message.
func (l letter) messageID(g group) string {
	return stableID(l.uuid, g.id) + "@" + l.from.Domain()
}

// message makes the MIME text of a group's message.
func (l letter) message(g group, date time.Time) message {
	m := mail.NewMsg(mail.WithNoDefaultUserAgent(), mail.WithEncoding(mail.EncodingQP))
	m.FromMailAddress(l.from.header())
	for _, a := range g.to {
		m.AddToMailAddress(a.header())
	}
	for _, a := range g.cc {
		m.AddCcMailAddress(a.header())
	}
	for _, a := range l.replyTo {
		m.ReplyToMailAddress(append(m.GetReplyTo(), a.header())...)
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
			m.EmbedReadSeeker(f.name, bytes.NewReader(f.content), append(options, mail.WithFileContentID(f.contentID))...)
			continue
		}
		m.AttachReadSeeker(f.name, bytes.NewReader(f.content), options...)
	}
	if l.dkim != nil {
		return signedMessage{m, l.dkim, len(l.unsubscribe) > 0}
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
func (h *Handler) content(ctx context.Context, p SendPayload, settings cms.Settings) (Content, error) {
	look := h.look(settings)
	var c Content
	var err error
	if p.Template != "" {
		c, err = h.fill(ctx, p.Template, p.Locale, p.Data, settings)
	} else {
		c = ownBody(p, look)
	}
	if err != nil {
		return c, err
	}
	if p.Subject != "" {
		c.Subject = p.Subject
		if p.Data != nil {
			c.Subject, _ = substitute(p.Subject, variables(p.Data, look), plain, lenient)
		}
	}
	if err := checkLine(c.Subject); err != nil {
		return c, jobs.Permanent(fmt.Errorf("the subject %w", err))
	}
	if len(c.Subject) > maxSubject {
		return c, jobs.Permanent(fmt.Errorf("the subject has more than %d bytes", maxSubject))
	}
	return c, nil
}

var htmlTag = regexp.MustCompile(`(?i)<(!doctype|html|body|head|p|br|div|span|table|tr|td|a|b|i|u|strong|em|h[1-6]|ul|ol|li|img|hr|blockquote|pre)\b[^>]*>`)

// ownBody is the payload's body, its {{ variables }} replaced where it has data.
func ownBody(p SendPayload, look Branding) Content {
	html := p.Format == "html" || (p.Format == "" && htmlTag.MatchString(p.Body))
	body, text := p.Body, p.Text
	if p.Data != nil {
		vars := variables(p.Data, look)
		escape := plain
		if html {
			escape = escapeHTML
		}
		body, _ = substitute(body, vars, escape, lenient)
		text, _ = substitute(text, vars, plain, lenient)
	}
	switch {
	case html && text == "":
		return Content{HTML: body, Text: textOf(body)}
	case html:
		return Content{HTML: body, Text: text}
	case body == "":
		return Content{Text: text}
	}
	return Content{Text: body}
}
