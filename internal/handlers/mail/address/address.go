package address

import (
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Limits of RFC 5321, 4.5.3.1, in octets.
const (
	maxAddress = 254
	maxLocal   = 64
)

// Address is one mailbox, checked: safe in a header and in an SMTP command.
type Address struct {
	Name string // as written, without quotes or encoding
	// Mailbox is local@domain, the domain in lower-case ASCII (punycode).
	Mailbox string
}

// Key is what makes two addresses the same in the ledger and the suppression
// list. Local parts may differ by case in theory (RFC 5321, 2.4); no server
// does that, and people do not mean it.
func (a Address) Key() string { return strings.ToLower(a.Mailbox) }

// Domain is the part after the @.
func (a Address) Domain() string { return a.Mailbox[strings.LastIndexByte(a.Mailbox, '@')+1:] }

// NeedsUTF8 says that only a server with SMTPUTF8 (RFC 6531) can take it.
func (a Address) NeedsUTF8() bool { return !IsASCII(a.Mailbox) }

func (a Address) Header() *mail.Address { return &mail.Address{Name: a.Name, Address: a.Mailbox} }

// String is the address as people write it.
func (a Address) String() string {
	if a.Name == "" {
		return a.Mailbox
	}
	return `"` + strings.ReplaceAll(a.Name, `"`, `'`) + `" <` + a.Mailbox + `>`
}

// Parse reads one address: a@b.c or Name <a@b.c>. It takes what RFC
// 5321, 5322 and 6531 take, but for what only attackers write: control
// characters and line separators, lists, quoted local parts, address literals.
func Parse(text string) (Address, error) {
	if err := CheckLine(text); err != nil {
		return Address{}, phrase.Errorf("the address %.60q %w", text, err)
	}
	if len(text) > 1000 {
		return Address{}, phrase.Errorf("the address %.60q… is too long", text)
	}
	parsed, err := mail.ParseAddress(strings.TrimSpace(text))
	// a group of one: RFC 5322 has it, nobody means it
	if err != nil || strings.HasSuffix(strings.TrimSpace(text), ";") {
		return Address{}, phrase.Errorf("%.60q is not an address like name@example.com", text)
	}
	if err := CheckLine(parsed.Name + parsed.Address); err != nil { // encoded words may hide anything
		return Address{}, phrase.Errorf("the address %.60q %w", text, err)
	}
	mailbox, err := checkMailbox(parsed.Address)
	if err != nil {
		return Address{}, phrase.Errorf("the address %.60q %w", text, err)
	}
	return Address{Name: parsed.Name, Mailbox: mailbox}, nil
}

func checkMailbox(mailbox string) (string, error) {
	at := strings.LastIndexByte(mailbox, '@')
	if at <= 0 {
		return "", phrase.Errorf("has no part before the @")
	}
	local, domain := mailbox[:at], mailbox[at+1:]
	if len(local) > maxLocal {
		return "", phrase.Errorf("has more than %d bytes before the @", maxLocal)
	}
	if !dotAtom(local) {
		return "", phrase.Errorf("has characters before the @ that are not taken: write it without quotes")
	}
	domain, err := checkDomain(domain)
	if err != nil {
		return "", err
	}
	if mailbox = local + "@" + domain; len(mailbox) > maxAddress {
		return "", phrase.Errorf("has more than %d bytes", maxAddress)
	}
	return mailbox, nil
}

// checkDomain returns the domain as DNS and MAIL FROM want it.
func checkDomain(domain string) (string, error) {
	if strings.HasPrefix(domain, "[") {
		return "", phrase.Errorf("names a server by number: use its name")
	}
	name, err := idna.Lookup.ToASCII(strings.TrimSuffix(domain, "."))
	if err != nil || name == "" || len(name) > 253 {
		return "", phrase.Errorf("has no valid domain after the @")
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return "", phrase.Errorf("has no valid domain after the @")
		}
	}
	return name, nil
}

// dotAtom is RFC 5322's dot-atom, with the letters of RFC 6531. A leading "-"
// is refused too: it would look like an option to sendmail.
func dotAtom(local string) bool {
	if local == "" || local[0] == '-' || local[0] == '.' || strings.HasSuffix(local, ".") ||
		strings.Contains(local, "..") || !utf8.ValidString(local) {
		return false
	}
	for _, r := range local {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		case strings.ContainsRune(".!#$%&'*+-/=?^_`{|}~", r):
		case r >= 0x80 && unicode.IsPrint(r):
		default:
			return false
		}
	}
	return true
}

var errLine = phrase.Errorf("holds a line break or a control character")

// CheckLine refuses what could begin a new header line or command, also after
// a careless conversion: controls (C0, DEL, C1) and Unicode's line separators.
func CheckLine(text string) error {
	if !utf8.ValidString(text) {
		return phrase.Errorf("is not UTF-8")
	}
	for _, r := range text {
		if (unicode.IsControl(r) && r != '\t') || r == '\u2028' || r == '\u2029' {
			return errLine
		}
	}
	return nil
}

func IsASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
