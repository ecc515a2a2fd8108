package mail

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	netmail "net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gomsgauth "github.com/emersion/go-msgauth/dkim"

	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/dkim"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// Signatures are verified by another library than the one that signs.
func TestMailIsSigned(t *testing.T) {
	old, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, young, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{"rsa": old, "ed25519": young} {
		t.Run(name, func(t *testing.T) {
			file, record := written(t, name, key)
			s := newSink(t, nil)
			c := config(t, s, jobstest.SQLite)
			if c.DKIM, err = dkim.Load("example.com", "s1", file); err != nil {
				t.Fatal(err)
			}
			h := handler(t, c)
			for i := range 4 { // the others over the same connection
				p := map[string]any{"to": "Zoë <a@b.example>", "bcc": "c@d.example", "subject": "Chào " + name,
					"body": "<p>thế giới</p>\r\n.\r\n"}
				if i > 1 {
					p["cc"], p["replyTo"] = "cc@b.example", "reply@b.example"
				}
				if i > 2 {
					p["unsubscribe"] = "https://shop.example/u/1?k=" + strings.Repeat("x", 100) +
						" mailto:leave@shop.example"
				}
				if _, err := run(t, h, fmt.Sprint("j", i), 1, p); err != nil {
					t.Fatal(err)
				}
			}
			listed := 0
			for _, got := range s.all() {
				checks, err := gomsgauth.VerifyWithOptions(bytes.NewReader(got.data), &gomsgauth.VerifyOptions{
					LookupTXT: func(domain string) ([]string, error) {
						if domain != "s1._domainkey.example.com" {
							t.Errorf("looked up %s", domain)
						}
						return []string{record}, nil
					}})
				if err != nil || len(checks) != 1 || checks[0].Err != nil || checks[0].Domain != "example.com" {
					t.Errorf("%+v, %v", checks, err)
					continue
				}
				parsed, err := netmail.ReadMessage(bytes.NewReader(got.data))
				if err != nil {
					t.Fatal(err)
				}
				for _, header := range []string{"From", "To", "Cc", "Reply-To", "Subject", "Date", "Message-Id",
					"Content-Type", "Mime-Version", "Auto-Submitted", "List-Unsubscribe", "List-Unsubscribe-Post"} {
					if parsed.Header.Get(header) != "" && !slices.ContainsFunc(checks[0].HeaderKeys,
						func(k string) bool { return strings.EqualFold(k, header) }) {
						t.Errorf("%s is not signed", header)
					}
				}
				if one := parsed.Header.Get("List-Unsubscribe-Post"); one != "" && one != "List-Unsubscribe=One-Click" {
					t.Errorf("List-Unsubscribe-Post: %s", one)
				}
				listed += len(parsed.Header["List-Unsubscribe"])
			}
			if listed != 1 {
				t.Errorf("%d mails with List-Unsubscribe, want 1", listed)
			}
		})
	}
}

func written(t *testing.T, name string, key crypto.Signer) (file, record string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "gomsgauth.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	public, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		if public, err = x509.MarshalPKIXPublicKey(key.Public()); err != nil {
			t.Fatal(err)
		}
	}
	return file, "v=DKIM1; k=" + name + "; p=" + base64.StdEncoding.EncodeToString(public)
}

func TestADKIMKeyThatOthersMayReadIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := dkim.Load("example.com", "s", file); err == nil {
		t.Error("it is taken")
	}
}

func TestUnsubscribeAddressesAreHTTPSOrMail(t *testing.T) {
	for text, good := range map[string]bool{
		"": true, "https://a.example/u?x=1": true, "mailto:u@a.example?subject=leave": true,
		"https://a.example/u, mailto:u@a.example": true,
		"http://a.example/u":                      false, "https://a.example/u https://b.example/u": false,
		"javascript:alert(1)":          false,
		"https://a.example/>\r\nBcc:x": false, "ftp": false,
	} {
		p := SendPayload{To: Addresses{"a@b.example"}, Text: "x", Unsubscribe: text}
		if err := p.Validate(); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}
