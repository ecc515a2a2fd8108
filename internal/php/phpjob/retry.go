package phpjob

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"time"
)

// limits are the keys that Retried changes, where they have a number.
var limits = regexp.MustCompile(`"(attempts|retryUntil|timeoutAt)"\s*:\s*"?[0-9]`)

// Limited says whether a payload may have what Retried changes.
func Limited(raw []byte) bool { return limits.Match(raw) }

// Retried is a payload as queue:retry writes it back: no attempts counted, and a
// retryUntil that begins again. Laravel asks the class for it; here it moves by how
// long ago the job was enqueued. Where that is not known, it goes, and maxTries
// decides. All other bytes stay as they are, their order too.
func Retried(raw []byte, enqueued, now time.Time) []byte {
	raw = replaced(raw, "attempts", func(json.RawMessage) string { return "0" })
	for _, key := range []string{"retryUntil", "timeoutAt"} {
		raw = replaced(raw, key, func(old json.RawMessage) string {
			until := moment(old)
			if until.IsZero() {
				return string(old)
			}
			if created := createdAt(raw); !created.IsZero() {
				enqueued = created
			}
			if enqueued.IsZero() || !enqueued.Before(until) {
				return null
			}
			return strconv.FormatInt(now.Add(until.Sub(enqueued)).Unix(), 10)
		})
	}
	return raw
}

// createdAt is when the job was pushed, which payloads say since Laravel 12.
func createdAt(raw []byte) time.Time {
	var keys struct {
		CreatedAt json.RawMessage `json:"createdAt"`
	}
	if json.Unmarshal(raw, &keys) != nil {
		return time.Time{}
	}
	return moment(keys.CreatedAt)
}

// replaced writes another value for a key of the outermost object, where it is there.
func replaced(raw []byte, key string, with func(json.RawMessage) string) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return raw
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return raw
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return raw
		}
		if name == key {
			end := int(d.InputOffset())
			return append(append(append(make([]byte, 0, len(raw)+20), raw[:end-len(value)]...), with(value)...),
				raw[end:]...)
		}
	}
	return raw
}
