package provider

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/mail"
	"slices"
	"strings"

	gomessage "github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset" // our own messages are UTF-8; attached ones may not be
)

// parts are a message for a service that takes none.
type parts struct {
	from        string // as in the header
	sender      mailbox
	to, cc, bcc []mailbox // together the envelope
	replyTo     []mailbox
	subject     string
	text, html  string
	headers     []field // those that a service does not write itself
	files       []file
	sections    int
}

type mailbox struct{ name, address string }

type field struct{ name, value string }

type file struct {
	name, kind, cid string
	content         []byte
}

// maxSections bounds the parts of a message.
const maxSections = 1000

// kept are the headers that are handed on; the service writes the others.
var kept = []string{"List-Unsubscribe", "List-Unsubscribe-Post", "Auto-Submitted", "In-Reply-To", "References",
	"Importance", "Precedence"}

// readParts takes a message apart. Its recipients are those of the envelope: a name in
// the header that is not in the envelope gets no mail.
func readParts(m Mail) (*parts, error) {
	entity, err := gomessage.Read(bytes.NewReader(m.Text))
	if err != nil && !gomessage.IsUnknownCharset(err) {
		return nil, fmt.Errorf("reading its header: %w", err)
	}
	p := &parts{}
	p.address(entity.Header, m)
	if p.subject, err = entity.Header.Text("Subject"); err != nil {
		return nil, fmt.Errorf("reading its subject: %w", err)
	}
	for _, name := range kept {
		if value := entity.Header.Get(name); value != "" {
			p.headers = append(p.headers, field{name, value})
		}
	}
	if err := entity.Walk(p.section); err != nil {
		return nil, fmt.Errorf("reading its parts: %w", err)
	}
	return p, nil
}

// address sorts the envelope's mailboxes by what the header says of them.
func (p *parts) address(h gomessage.Header, m Mail) {
	left := slices.Clone(m.Recipients)
	take := func(name string) (list []mailbox) {
		for _, a := range mailboxes(h, name) {
			i := slices.IndexFunc(left, func(r string) bool { return strings.EqualFold(r, a.address) })
			if i >= 0 {
				list = append(list, mailbox{a.name, left[i]})
				left = slices.Delete(left, i, i+1)
			}
		}
		return list
	}
	p.to, p.cc = take("To"), take("Cc")
	for _, r := range left {
		p.bcc = append(p.bcc, mailbox{"", r})
	}
	if len(p.to) == 0 { // the services want one: nobody sees another's hidden name, see Batches
		p.to, p.cc, p.bcc = firstOf(p.cc, p.bcc)
	}
	p.replyTo = mailboxes(h, "Reply-To")
	p.sender = mailbox{"", m.From}
	if from := mailboxes(h, "From"); len(from) > 0 {
		p.sender = from[0]
	}
	p.from = list([]mailbox{p.sender})
}

// firstOf moves one mailbox to the front. A hidden one stands alone in its batch.
func firstOf(cc, bcc []mailbox) (to, restCC, restBCC []mailbox) {
	switch {
	case len(cc) > 0:
		return cc[:1], cc[1:], bcc
	case len(bcc) > 0:
		return bcc[:1], cc, bcc[1:]
	}
	return nil, cc, bcc
}

// Batches are the recipients of the requests that a message needs: at most
// MaxRecipients in each. Where the service writes the header, a recipient whom the
// message's own header does not name is hidden from the others: beside one who is
// named, or alone.
func (s *Sender) Batches(text []byte, recipients []string) (batches [][]string, err error) {
	if s.a.Service == Mailgun || s.a.Service == SES {
		return slices.Collect(slices.Chunk(recipients, MaxRecipients)), nil
	}
	entity, err := gomessage.Read(bytes.NewReader(text))
	if err != nil && !gomessage.IsUnknownCharset(err) {
		return nil, fmt.Errorf("reading the header of a mail: %w", err)
	}
	var named, hidden []string
	for _, r := range recipients {
		is := func(a mailbox) bool { return strings.EqualFold(a.address, r) }
		if slices.ContainsFunc(slices.Concat(mailboxes(entity.Header, "To"), mailboxes(entity.Header, "Cc")), is) {
			named = append(named, r)
		} else {
			hidden = append(hidden, r)
		}
	}
	for first := range slices.Chunk(named, MaxRecipients) {
		n := min(MaxRecipients-len(first), len(hidden))
		batches = append(batches, slices.Concat(first, hidden[:n]))
		hidden = hidden[n:]
	}
	for _, r := range hidden {
		batches = append(batches, []string{r})
	}
	return batches, nil
}

func mailboxes(h gomessage.Header, name string) (all []mailbox) {
	list, err := mail.ParseAddressList(h.Get(name))
	if err != nil {
		return nil // none, or unreadable: the envelope has the recipients
	}
	for _, a := range list {
		all = append(all, mailbox{a.Name, a.Address})
	}
	return all
}

// list writes mailboxes as a header has them.
func list(all []mailbox) string {
	texts := make([]string, len(all))
	for i, a := range all {
		texts[i] = a.address
		if a.name != "" {
			texts[i] = (&mail.Address{Name: a.name, Address: a.address}).String()
		}
	}
	return strings.Join(texts, ", ")
}

// section reads one part: the first text and the first HTML are the mail, all else is
// attached.
func (p *parts) section(_ []int, e *gomessage.Entity, err error) error {
	if err != nil && !gomessage.IsUnknownCharset(err) {
		return err
	}
	if p.sections++; p.sections > maxSections {
		return errors.New("it has too many")
	}
	kind, params, err := e.Header.ContentType()
	if err != nil {
		kind = "application/octet-stream"
	}
	if strings.HasPrefix(kind, "multipart/") {
		return nil
	}
	content, err := io.ReadAll(e.Body)
	if err != nil {
		return err
	}
	disposition, more, _ := e.Header.ContentDisposition() // a broken one is none
	f := file{name: more["filename"], kind: kind, content: content,
		cid: strings.Trim(e.Header.Get("Content-Id"), "<>")}
	if f.name == "" {
		f.name = params["name"]
	}
	switch {
	case disposition == "attachment" || f.name != "" || f.cid != "":
		p.files = append(p.files, f)
	case kind == "text/html" && p.html == "":
		p.html = string(content)
	case kind == "text/plain" && p.text == "":
		p.text = string(content)
	default:
		f.name = "part"
		p.files = append(p.files, f)
	}
	return nil
}
