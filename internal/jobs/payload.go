package jobs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Origin says whose a row of the jobs table is.
type Origin int

// The four origins of a payload.
const (
	Ours      Origin = iota + 1 // a type that is registered here
	Foreign                     // PHP's own: it names a job class that is none of our types
	Unknown                     // no type, or one that nobody here has registered
	Malformed                   // not a JSON object in UTF-8
)

// Envelope is a payload taken apart.
type Envelope struct {
	Type     string // as the row says it; an alias is not resolved
	UUID     string
	Data     json.RawMessage
	Metadata json.RawMessage
	MaxTries int           // 0 when the row has no limit
	Timeout  time.Duration // 0 when the row has no limit
}

// bookkeeping are the keys of a payload that are not the handler's.
var bookkeeping = []string{
	"type", "topic", "jobType", "job", "displayName", "uuid", "metadata", "maxTries", "maxExceptions",
	"failOnTimeout", "backoff", "timeout", "timeoutAt", "retryUntil", "createdAt", "uniqueKey",
}

// pushedKeys are besides what queue libraries write (Laravel 5 to 13). In a
// flat payload that a person wrote they may be the handler's own: an id, tags.
var pushedKeys = []string{"delay", "attempts", "id", "tags", "silenced", "pushedAt"}

// kept says whether a key of a payload is the queue's and not the handler's.
func kept(key string, pushed bool) bool {
	return slices.Contains(bookkeeping, key) || pushed && slices.Contains(pushedKeys, key)
}

// Parse takes a payload apart. known says whether a name is a type (or alias)
// that can run here. It reads all shapes that the specifications name: flat
// {"type":…,"force":…}, enveloped {"type":…,"data":…,"metadata":…}, what
// Queue::push('type', $data) writes ({"job":…,"data":…}), and the {"topic"|
// "jobType"|"type":…,"payload":…} of the specifications. The error
// is for people; it is nil for Ours.
func Parse(raw []byte, known func(string) bool) (Envelope, Origin, error) {
	if !utf8.Valid(raw) {
		return Envelope{}, Malformed, errors.New("the payload is not UTF-8")
	}
	var capacity [16]member
	keys, err := topLevel(raw, capacity[:0])
	if err != nil {
		return Envelope{}, Malformed, fmt.Errorf("the payload is not a JSON object: %w", err)
	}
	job := text(keys.value("job"))
	if job != "" && !known(job) {
		return Envelope{Type: job}, Foreign, fmt.Errorf("the job %q belongs to PHP", job)
	}
	e := Envelope{
		Type:     named(keys),
		UUID:     text(keys.value("uuid")),
		Data:     dataOf(keys),
		Metadata: object(keys.value("metadata")),
		MaxTries: max(number(keys.value("maxTries")), 0),
		Timeout:  time.Duration(max(number(keys.value("timeout")), 0)) * time.Second,
	}
	if !known(e.Type) {
		if e.Type == "" {
			return e, Unknown, errors.New(`the payload names no type: it needs a "type"`)
		}
		return e, Unknown, fmt.Errorf("no handler is registered for the type %q", e.Type)
	}
	return e, Ours, nil
}

// named is the type that a payload names, by any of its words for it.
func named(keys members) string {
	return cmp.Or(text(keys.value("type")), text(keys.value("topic")), text(keys.value("jobType")),
		text(keys.value("job")))
}

// WithoutType is data without a field "type" that only repeats the job's type, by one
// of its names: the payloads of specification S0 have it, and the type is said beside
// them already. A "type" that says something else is a field like any other.
func WithoutType(data json.RawMessage, names ...string) json.RawMessage {
	if !bytes.Contains(data, []byte(`"type"`)) {
		return data
	}
	keys, err := topLevel(data, nil)
	if err != nil || !slices.Contains(names, text(keys.value("type"))) {
		return data
	}
	rest := make(map[string]json.RawMessage, len(keys))
	for _, m := range keys {
		if name := string(m.name); name != "type" {
			rest[name] = m.value
		}
	}
	return encodeKeys(rest)
}

// dataOf finds the handler's part of a payload.
func dataOf(keys members) json.RawMessage {
	pushed := keys.value("job") != nil
	for _, wrapper := range []string{"data", "payload"} {
		// Other keys beside it mean that the payload is flat and the handler's
		// own field has that name (a mail's template data), unless "job" says
		// that the row was written by a queue library.
		if inner := keys.value(wrapper); inner != nil && (pushed || keys.alone(wrapper)) {
			return bytes.Clone(WithoutType(object(inner), named(keys))) // the handler may write to it
		}
	}
	rest := make(map[string]json.RawMessage, len(keys))
	for _, m := range keys {
		if name := string(m.name); !kept(name, pushed) {
			rest[name] = m.value
		}
	}
	return encodeKeys(rest)
}

// alone says that name is the only key that is not the queue's.
func (m members) alone(name string) bool {
	return !slices.ContainsFunc(m, func(x member) bool {
		return string(x.name) != name &&
			!kept(string(x.name), false)
	})
}

func encodeKeys(keys map[string]json.RawMessage) json.RawMessage {
	data, err := json.Marshal(keys)
	if err != nil { // the values came out of a decoder: they encode
		return json.RawMessage("{}")
	}
	return data
}

// object turns PHP's ways to write nothing into {}.
func object(data json.RawMessage) json.RawMessage {
	if emptyJSON(data) {
		return json.RawMessage("{}")
	}
	return data
}

func text(data json.RawMessage) string {
	if len(data) < 2 || data[0] != '"' {
		return ""
	}
	return string(unquoted(data))
}

// number reads 3 and "3"; anything else is 0.
func number(data json.RawMessage) int {
	if len(data) == 0 || data[0] == 'n' { // missing, or null
		return 0
	}
	n, err := strconv.Atoi(strings.Trim(string(data), `" `))
	if err != nil || n > 1<<31 {
		return 0
	}
	return n
}

// envelope is the form in which we write payloads, with the keys by which
// Laravel's queue:failed, queue:retry and its worker know a job: so the CMS's
// own tools name it and retry it, and a PHP worker that meets it by accident
// fails it instead of deleting it. What Laravel writes as null is left out: it
// reads a missing key likewise (Illuminate\Queue\Jobs\Job), and a short row is
// claimed faster.
type envelope struct {
	UUID        string          `json:"uuid"`
	DisplayName string          `json:"displayName"`
	Job         string          `json:"job"`
	MaxTries    int             `json:"maxTries,omitempty"`
	Type        string          `json:"type"`
	Data        json.RawMessage `json:"data"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
}

// EncodePayload writes the payload column of a job. n must have passed Check
// and must have its UUID.
func EncodePayload(n Spec) ([]byte, error) {
	e := envelope{UUID: n.UUID, DisplayName: n.Type, Job: n.Type, MaxTries: max(n.MaxAttempts, 0), Type: n.Type,
		Data: object(n.Data)}
	if len(n.Metadata) > 0 && !emptyJSON(n.Metadata) {
		e.Metadata = n.Metadata
	}
	data, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encoding the payload of %s: %w", n.Type, err)
	}
	return data, nil
}

// RetryPayload returns raw with the keys added that the CMS's own tools need in
// failed_jobs, where it lacks them (a flat payload of a CMS). Keys that are
// there stay as they are; what is no JSON object is wrapped.
func RetryPayload(raw []byte, uuid, kind string) []byte {
	var keys map[string]json.RawMessage
	if json.Unmarshal(raw, &keys) != nil || keys == nil {
		quoted, err := json.Marshal(strings.ToValidUTF8(string(raw), "\uFFFD"))
		if err != nil {
			quoted = []byte(`""`)
		}
		keys = map[string]json.RawMessage{"unreadable": quoted}
	}
	for key, value := range map[string]string{"uuid": uuid, "displayName": kind, "job": kind} {
		if text(keys[key]) == "" {
			keys[key] = json.RawMessage(strconv.Quote(value))
		}
	}
	return encodeKeys(keys)
}
