package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Headers of the Standard Webhooks specification, version 1.0.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// secretPrefix marks a secret; the rest is base64 of 24 to 64 random bytes.
const secretPrefix = "whsec_"

// NewSecret makes a secret of 256 bits.
func NewSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

func keyOf(secret string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil || len(key) < 16 {
		return nil, errors.New("a webhook secret is whsec_ and at least 16 bytes in base64: make one by cmsjobs " +
			"webhook secret")
	}
	return key, nil
}

// Sign returns the signature of one message: "v1," and base64 of the
// HMAC-SHA256 of "id.timestamp.body".
func Sign(secret, id string, at time.Time, body []byte) (string, error) {
	key, err := keyOf(secret)
	if err != nil {
		return "", err
	}
	return "v1," + base64.StdEncoding.EncodeToString(sum(key, id, strconv.FormatInt(at.Unix(), 10), body)), nil
}

func sum(key []byte, id, timestamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.", id, timestamp)
	mac.Write(body)
	return mac.Sum(nil)
}

// tolerance is how far a message's time may be off: it bounds replays.
const tolerance = 5 * time.Minute

// ErrSignature says that a message was not signed by who knows the secret, or
// long ago.
var ErrSignature = errors.New("the webhook's signature is missing, wrong or too old")

// Verifier checks messages that others send to us. It fails at once when the
// secret cannot be one.
func Verifier(secret string, now func() time.Time) (func(http.Header, []byte) error, error) {
	key, err := keyOf(secret)
	if err != nil {
		return nil, err
	}
	return func(header http.Header, body []byte) error {
		id, timestamp := header.Get(HeaderID), header.Get(HeaderTimestamp)
		seconds, err := strconv.ParseInt(timestamp, 10, 64)
		if err != nil || id == "" {
			return ErrSignature
		}
		if off := now().Sub(time.Unix(seconds, 0)); off > tolerance || off < -tolerance {
			return ErrSignature
		}
		want := sum(key, id, timestamp, body)
		for signature := range strings.FieldsSeq(header.Get(HeaderSignature)) {
			version, text, _ := strings.Cut(signature, ",")
			got, err := base64.StdEncoding.DecodeString(text)
			if version == "v1" && err == nil && hmac.Equal(got, want) {
				return nil
			}
		}
		return ErrSignature
	}, nil
}
