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
	"os"
	"path/filepath"
	"testing"

	"github.com/emersion/go-msgauth/dkim"

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
			if c.DKIM, err = LoadDKIM("example.com", "s1", file); err != nil {
				t.Fatal(err)
			}
			h := handler(t, c)
			for i := range 2 { // the second over the same connection
				if _, err := run(t, h, fmt.Sprint("j", i), 1, map[string]any{"to": "Zoë <a@b.example>", "bcc": "c@d.example", "subject": "Chào " + name, "body": "<p>thế giới</p>\r\n.\r\n"}); err != nil {
					t.Fatal(err)
				}
			}
			for _, got := range s.all() {
				checks, err := dkim.VerifyWithOptions(bytes.NewReader(got.data), &dkim.VerifyOptions{LookupTXT: func(domain string) ([]string, error) {
					if domain != "s1._domainkey.example.com" {
						t.Errorf("looked up %s", domain)
					}
					return []string{record}, nil
				}})
				if err != nil || len(checks) != 1 || checks[0].Err != nil || checks[0].Domain != "example.com" {
					t.Errorf("%+v, %v", checks, err)
				}
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
	file = filepath.Join(t.TempDir(), "dkim.pem")
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
	if _, err := LoadDKIM("example.com", "s", file); err == nil {
		t.Error("it is taken")
	}
}
