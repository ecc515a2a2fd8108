package mail

import (
	"fmt"
	"os"

	"github.com/wneessen/go-mail"
)

// LoadDKIM reads a private key (PEM, RSA or Ed25519) that signs mail for
// domain; selector._domainkey.domain is its place in DNS (RFC 6376). A file
// that others may read is refused.
func LoadDKIM(domain, selector, keyFile string) (*mail.DKIMSigner, error) {
	info, err := os.Stat(keyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the DKIM key: %w", err)
	}
	if info.Mode().Perm()&0o037 != 0 {
		return nil, fmt.Errorf("the DKIM key %s may be read by others (mode %04o): make it 0600 or 0640", keyFile, info.Mode().Perm())
	}
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the DKIM key: %w", err)
	}
	key, err := mail.PrivKeyFromPEM(text)
	if err != nil {
		return nil, fmt.Errorf("reading the DKIM key %s: %w", keyFile, err)
	}
	return mail.NewDKIMSigner(domain, selector, key), nil
}
