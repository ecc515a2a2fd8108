package mail

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/address"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/template"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Bounds of one payload. Larger lists belong into several jobs.
const (
	maxRecipients  = 1000
	maxSubject     = 998 // characters of a header line, RFC 5322, 2.1.1
	maxAttachments = 50
)

// SendPayload says what to send. A recipient and one of Body, Text and Template
// are needed. A template may be for the CMS's administrators (see
// template.Administrators): then the recipient may be missing.
type SendPayload struct {
	// To, CC and BCC are one address, several separated by commas, or a list.
	To      Addresses `json:"to,omitempty" synonyms:"recipient,recipients" example:"zoe@example.com"`
	CC      Addresses `json:"cc,omitempty"`
	BCC     Addresses `json:"bcc,omitempty"`
	ReplyTo Addresses `json:"replyTo,omitempty"`
	// From is the CMS's sender when empty; one address, or {email, name}.
	From    OneAddress `json:"from,omitempty" synonyms:"sender"`
	Subject string     `json:"subject,omitempty" example:"Hello"`
	// Body is HTML when it looks like it (or Format says so), else text. With
	// Data, its {{ variables }} are replaced, escaped.
	Body string `json:"body,omitempty" example:"<p>Hi</p>" encrypted:"true"`
	// Format of Body: "html", "text", or "" to find out.
	Format string `json:"format,omitempty" choices:"html,text"`
	// Text is the plain alternative of an HTML body; made from it when empty.
	Text string `json:"text,omitempty" encrypted:"true"`
	// Template is one of ours ("password-reset") or, as "cms:plugins/contact/notice",
	// one of the CMS's simple ones.
	Template string `json:"template,omitempty"`
	Data     Data   `json:"data,omitempty" encrypted:"true"`
	Locale   string `json:"locale,omitempty"`
	// Attachments are paths under the allowed folders, or objects.
	Attachments []Attachment `json:"attachments,omitempty"`
	// Separate sends each recipient of To a separate mail: they do not see
	// each other.
	Separate bool `json:"separate,omitempty" default:"false"`
	// Unsubscribe is an https address, a mailto address or both: the mail gets
	// List-Unsubscribe, and for https the one-click header of RFC 8058.
	Unsubscribe string `json:"unsubscribe,omitempty"`
	// MaxAge in seconds: dropped when older at its turn. 0 is the template's.
	MaxAge int `json:"maxAge,omitempty" unit:"seconds"`
}

// Validate finds what no repeating would fix.
func (p *SendPayload) Validate() error {
	var wrong []error
	to, _ := p.To.named()
	for _, list := range []Addresses{to, p.CC, p.BCC, p.ReplyTo} {
		_, err := list.parse()
		wrong = append(wrong, err)
	}
	if p.From != "" {
		_, err := address.Parse(string(p.From))
		wrong = append(wrong, err)
	}
	wrong = append(wrong, p.checkText())
	_, err := unsubscribeAddresses(p.Unsubscribe)
	wrong = append(wrong, err)
	for _, a := range p.Attachments {
		wrong = append(wrong, a.check())
	}
	return errors.Join(wrong...)
}

// checkText checks what is said and how much of it there is.
func (p *SendPayload) checkText() error {
	switch {
	case address.CheckLine(p.Subject) != nil:
		return phrase.Errorf("the subject %w", address.CheckLine(p.Subject))
	case len(p.Subject) > maxSubject:
		return phrase.Errorf("the subject has more than %d bytes", maxSubject)
	case p.Template == "" && p.Body == "" && p.Text == "":
		return phrase.Errorf("a mail needs body, text or template")
	case p.Template != "" && (p.Body != "" || p.Text != ""):
		return phrase.Errorf("a mail has either a template or a body, not both")
	case !slices.Contains([]string{"", "html", "text"}, p.Format):
		return phrase.Errorf("format is %q; it may be html or text", p.Format)
	case len(p.To)+len(p.CC)+len(p.BCC) > maxRecipients:
		return phrase.Errorf("a mail has at most %d recipients: make several jobs", maxRecipients)
	case len(p.Attachments) > maxAttachments:
		return phrase.Errorf("a mail has at most %d attachments", maxAttachments)
	case p.MaxAge < 0:
		return phrase.Errorf("maxAge cannot be negative")
	}
	return nil
}

func (p *SendPayload) maxAge() time.Duration { return time.Duration(p.MaxAge) * time.Second }

// Data are the values for a template or for {{ variables }}.
type Data map[string]any

// AlsoReads implements schema.AlsoReader.
func (Data) AlsoReads() string { return "array" }

// UnmarshalJSON also reads PHP's empty array, which is [] in JSON.
func (d *Data) UnmarshalJSON(data []byte) error {
	var none []struct{}
	if json.Unmarshal(data, &none) == nil && len(none) == 0 {
		*d = nil
		return nil
	}
	return json.Unmarshal(data, (*map[string]any)(d))
}

// OneAddress is written as a string or as {email, name}.
type OneAddress string

// AlsoReads implements schema.AlsoReader.
func (OneAddress) AlsoReads() string { return "object" }

// UnmarshalJSON reads both shapes.
func (a *OneAddress) UnmarshalJSON(data []byte) error {
	text, err := readAddress(data)
	*a = OneAddress(text)
	return err
}

// Addresses are written as a string or a list of strings or {email, name}.
type Addresses []string

// AlsoReads implements schema.AlsoReader.
func (Addresses) AlsoReads() string { return "string" }

// UnmarshalJSON reads all the shapes.
func (a *Addresses) UnmarshalJSON(data []byte) error {
	*a = nil
	var one string
	if json.Unmarshal(data, &one) == nil {
		*a = splitAddresses(one)
		return nil
	}
	var many []json.RawMessage
	if json.Unmarshal(data, &many) != nil {
		many = []json.RawMessage{data}
	}
	for _, item := range many {
		address, err := readAddress(item)
		if err != nil {
			return err
		}
		*a = append(*a, address)
	}
	return nil
}

// named are the addresses without the word for the CMS's administrators, and
// whether it was there.
func (a Addresses) named() (rest Addresses, administrators bool) {
	for _, text := range a {
		if strings.TrimSpace(text) == template.Administrators {
			administrators = true
			continue
		}
		rest = append(rest, text)
	}
	return rest, administrators
}

// oneRecipient refuses a payload whose to, cc or bcc is one text with several
// addresses: a site that puts a visitor's input there would send to others.
func oneRecipient(payload json.RawMessage) error {
	var fields struct{ To, CC, BCC json.RawMessage }
	if err := json.Unmarshal(payload, &fields); err != nil {
		return phrase.Errorf("reading the recipients: %w", err)
	}
	for name, field := range map[string]json.RawMessage{"to": fields.To, "cc": fields.CC, "bcc": fields.BCC} {
		var text string
		if json.Unmarshal(field, &text) == nil && len(splitAddresses(text)) > 1 {
			return phrase.Errorf("%s names several addresses in one text: write a list, or set mail.one_recipient: "+
				"false",
				name)
		}
	}
	return nil
}

func readAddress(item json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(item, &text) == nil {
		return text, nil
	}
	var object struct{ Email, Address, Name string }
	if err := json.Unmarshal(item, &object); err != nil {
		return "", phrase.Errorf(`an address is a string or {"email": …, "name": …}`)
	}
	mailbox := object.Email
	if mailbox == "" {
		mailbox = object.Address
	}
	if object.Name == "" {
		return mailbox, nil
	}
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(object.Name)
	return `"` + quoted + `" <` + mailbox + `>`, nil
}

// splitAddresses cuts at commas that stand outside quotes and brackets.
func splitAddresses(text string) []string {
	var list []string
	quoted, start := false, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			quoted = !quoted
		case ',':
			if !quoted {
				list = append(list, text[start:i])
				start = i + 1
			}
		}
	}
	list = append(list, text[start:])
	return slices.DeleteFunc(list, func(s string) bool { return strings.TrimSpace(s) == "" })
}

// parse checks each address; all that are wrong are named.
func (a Addresses) parse() ([]address.Address, error) {
	var wrong []error
	list := make([]address.Address, 0, len(a))
	for _, text := range a {
		address, err := address.Parse(text)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		list = append(list, address)
	}
	return list, errors.Join(wrong...)
}

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

// Attachment is a file (Path), an object of the configured store (Key), or
// base64 text (Content). A plain string in a payload is a Path.
type Attachment struct {
	Path    string `json:"path,omitempty"`
	Key     string `json:"key,omitempty"`
	Content string `json:"content,omitempty"`
	// Name that the recipient sees; the file's own when empty.
	Name        string `json:"name,omitempty"`
	ContentType string `json:"contentType,omitempty"`
	// ContentID makes it an inline part that HTML shows as cid:ContentID.
	ContentID string `json:"contentId,omitempty"`
}

// AlsoReads implements schema.AlsoReader.
func (Attachment) AlsoReads() string { return "string" }

// UnmarshalJSON reads a path, or the object.
func (a *Attachment) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &a.Path) == nil {
		return nil
	}
	type plain Attachment // without this method
	return json.Unmarshal(data, (*plain)(a))
}

func (a Attachment) check() error {
	sources := 0
	for _, s := range []string{a.Path, a.Key, a.Content} {
		if s != "" {
			sources++
		}
	}
	if sources != 1 {
		return phrase.Errorf("an attachment has exactly one of path, key and content")
	}
	if a.Content != "" && a.Name == "" {
		return phrase.Errorf("an attachment with content needs a name")
	}
	for _, s := range []string{a.Path, a.Key, a.Name, a.ContentType, a.ContentID} {
		if err := address.CheckLine(s); err != nil {
			return phrase.Errorf("the attachment %.60q %w", a.Name+a.Path+a.Key, err)
		}
	}
	if strings.ContainsAny(a.ContentID, "<> \"") {
		return phrase.Errorf("the contentId %.60q holds characters that are not taken", a.ContentID)
	}
	return nil
}

// maxUnsubscribe bounds one address of List-Unsubscribe.
const maxUnsubscribe = 900

// unsubscribeAddresses reads https and mailto addresses, divided by blanks or
// commas, one of each at most.
func unsubscribeAddresses(text string) ([]string, error) {
	var list []string
	seen := map[string]bool{}
	for _, uri := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		u, err := url.Parse(uri)
		switch {
		case err != nil || len(uri) > maxUnsubscribe || address.CheckLine(uri) != nil ||
			strings.ContainsAny(uri, "<>\"\\"):
			return nil, phrase.Errorf("unsubscribe: %.80q is no address", uri)
		case u.Scheme == "https" && u.Host != "", u.Scheme == "mailto" && u.Opaque != "":
		default:
			return nil, phrase.Errorf("unsubscribe: %.80q is neither https://… nor mailto:…", uri)
		}
		if seen[u.Scheme] {
			return nil, phrase.Errorf("unsubscribe: one https and one mailto address at most")
		}
		seen[u.Scheme] = true
		list = append(list, uri)
	}
	return list, nil
}
