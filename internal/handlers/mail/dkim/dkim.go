package dkim

import (
	"bytes"
	"crypto"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/emersion/go-msgauth/dkim"
	"github.com/wneessen/go-mail"
)

// Key signs mail for one domain (RFC 6376). go-mail's own signer is not used:
// it breaks its signature where the list of headers is longer than a line
// (v0.8.1).
type Key struct {
	Domain, Selector string
	Private          crypto.Signer
}

// Load reads a private key (PEM, RSA or Ed25519) that signs mail for
// domain; selector._domainkey.domain is its place in DNS (RFC 6376). A file
// that others may read is refused.
func Load(domain, selector, keyFile string) (*Key, error) {
	info, err := os.Stat(keyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the DKIM key: %w", err)
	}
	if info.Mode().Perm()&0o037 != 0 {
		return nil, fmt.Errorf("the DKIM key %s may be read by others (mode %04o): make it 0600 or 0640", keyFile,
			info.Mode().Perm())
	}
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the DKIM key: %w", err)
	}
	key, err := mail.PrivKeyFromPEM(text)
	if err != nil {
		return nil, fmt.Errorf("reading the DKIM key %s: %w", keyFile, err)
	}
	return &Key{domain, selector, key}, nil
}

// signed are the headers under a signature. Those that a mail does not have are
// named too: nobody on the way can add a Reply-To or Cc.
var signed = []string{"From", "To", "Cc", "Reply-To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type",
	"Auto-Submitted"}

// listHeaders are signed where they are (RFC 8058, 4). Mailing lists add their
// own to other mail.
var listHeaders = []string{"List-Unsubscribe", "List-Unsubscribe-Post"}

// Message is a message with its signature in front.
type Message struct {
	io.WriterTo
	Key *Key
	// Listed signs the List-Unsubscribe headers too.
	Listed bool
}

// WriteTo writes the signature, then the message.
func (m Message) WriteTo(w io.Writer) (int64, error) {
	var text bytes.Buffer
	if _, err := m.WriterTo.WriteTo(&text); err != nil {
		return 0, err
	}
	keys := signed
	if m.Listed {
		keys = append(slices.Clone(signed), listHeaders...)
	}
	signer, err := dkim.NewSigner(&dkim.SignOptions{Domain: m.Key.Domain, Selector: m.Key.Selector,
		Signer: m.Key.Private, HeaderKeys: keys,
		HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed})
	if err != nil {
		return 0, fmt.Errorf("signing a mail: %w", err)
	}
	_, err = signer.Write(text.Bytes())
	if closed := signer.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return 0, fmt.Errorf("signing a mail: %w", err)
	}
	n, err := io.WriteString(w, signer.Signature())
	if err != nil {
		return int64(n), err
	}
	rest, err := text.WriteTo(w)
	return int64(n) + rest, err
}
