package config

import (
	"fmt"
	"log/slog"
	"regexp"
)

// mask is what people see of a secret. It says nothing about its length.
const mask = "******"

// Secret is a password, token or key. Printed, encoded or logged in any way it
// shows a mask; only Reveal gives the value.
type Secret string

// Reveal is the secret itself. Hand it to the library that needs it, and to
// nothing that writes.
func (s Secret) Reveal() string { return string(s) }

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return mask
}

// Format masks the secret under every verb, %x and %#v included.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// MarshalText masks the secret in JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue masks the secret in logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// DSN is a data source name: it shows where a database is, but not the
// password to it.
type DSN string

// Reveal is the data source name with its password.
func (d DSN) Reveal() string { return string(d) }

var (
	// user:password@ of a URL and of go-sql-driver's form. The last @ ends it,
	// since passwords may hold one.
	dsnPassword = regexp.MustCompile(`^((?:[a-z0-9+]+://)?[^:/@]*):(.*)@`)
	dsnOption   = regexp.MustCompile(`(?i)\b(password|passwd|pwd|sslpassword|_auth_pass)=('[^']*'|[^\s&]*)`)
)

func (d DSN) String() string {
	masked := dsnPassword.ReplaceAllString(string(d), "$1:"+mask+"@")
	return dsnOption.ReplaceAllString(masked, "$1="+mask)
}

// Format masks the password under every verb.
func (d DSN) Format(f fmt.State, _ rune) { fmt.Fprint(f, d.String()) }

// MarshalText masks the password in JSON and YAML.
func (d DSN) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// LogValue masks the password in logs.
func (d DSN) LogValue() slog.Value { return slog.StringValue(d.String()) }
