package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxPayload is how many bytes payload and metadata of a job may have, together.
// Larger things belong into a file or a table that the payload names.
const MaxPayload = 1 << 20

// maxWord is how many bytes a type, a queue, a unique key and an id may have each.
const maxWord = 191

// queueName is what the service takes as the name of a queue.
var queueName = regexp.MustCompile(`^[\w.:/-]{1,191}$`)

// Errors that callers may look for with errors.Is.
var (
	ErrInvalid  = errors.New("no valid job") // it would be refused by the service, too
	ErrNotFound = errors.New("not found")    // no job has the id
	ErrConflict = errors.New("not possible") // the job's state forbids it
)

// Job is a job to be enqueued. Only Type is needed.
type Job struct {
	Type    string // for example "sitemap.generate"
	Payload any    // what the handler needs; encoded as a JSON object
	Queue   string // "" is the Client's, or the type's own over HTTP
	// ID names the job; enqueuing the same ID twice makes one job. Choose a UUID.
	ID       string
	Metadata any // who asked; encoded as a JSON object
	Priority int // higher first; refused where the table is Laravel's own, which has no column for it
	// MaxAttempts is how often the job may be started; 0 leaves it to the type.
	// It lowers the type's limit and never raises it.
	MaxAttempts int
	RunAt       time.Time // zero is now
	// UniqueKey keeps a second job out while one with this key waits or runs.
	UniqueKey string
}

// Receipt says what became of one enqueued job.
type Receipt struct {
	ID string
	// Existing is set when a job with this ID or UniqueKey was there already; ID
	// is that job's.
	Existing bool
}

// encoded is a job whose payload and metadata are JSON.
type encoded struct {
	Job
	payload, metadata json.RawMessage
}

func (j Job) encode() (encoded, error) {
	e := encoded{Job: j}
	var err error
	if e.payload, err = encodeObject(j.Payload); err != nil {
		return e, fmt.Errorf("encoding the payload of %s: %w", j.Type, err)
	}
	if e.metadata, err = encodeObject(j.Metadata); err != nil {
		return e, fmt.Errorf("encoding the metadata of %s: %w", j.Type, err)
	}
	return e, e.check()
}

// encodeObject is nil for nothing: nil, null, and PHP's ways to write an empty object.
func encodeObject(v any) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	switch string(bytes.TrimSpace(data)) {
	case "[]", `""`, "null":
		return nil, nil
	}
	return data, nil
}

func (e encoded) check() error {
	invalid := func(format string, a ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, a...)...)
	}
	if e.Type == "" {
		return invalid("it needs a type, for example sitemap.generate")
	}
	if e.Queue != "" && !queueName.MatchString(e.Queue) {
		return invalid("the name of a queue has 1 to %d letters, digits and signs of . : / _ -, and %.60q is none",
			maxWord, e.Queue)
	}
	for _, word := range []string{e.Type, e.UniqueKey, e.ID} {
		if len(word) > maxWord || !utf8.ValidString(word) || strings.IndexByte(word, 0) >= 0 {
			return invalid("type, unique key and ID are UTF-8 without NUL, at most %d bytes each; %.40q is not",
				maxWord, word)
		}
	}
	if size := len(e.payload) + len(e.metadata); size > MaxPayload {
		return invalid("the payload of %s has %d bytes, %d are allowed: put large things into a file and name it",
			e.Type, size, MaxPayload)
	}
	if e.MaxAttempts < 0 {
		return invalid("the attempts of %s cannot be negative", e.Type)
	}
	return nil
}

// envelope is the payload column: the service's keys, and those by which
// Laravel's queue:failed and queue:retry know a job.
type envelope struct {
	UUID        string          `json:"uuid"`
	DisplayName string          `json:"displayName"`
	Job         string          `json:"job"`
	MaxTries    int             `json:"maxTries,omitempty"`
	Type        string          `json:"type"`
	Data        json.RawMessage `json:"data"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
}

// row writes the payload column of a job that has its ID.
func (e encoded) row() (string, error) {
	data := e.payload
	if data == nil {
		data = json.RawMessage("{}")
	}
	text, err := json.Marshal(envelope{UUID: e.ID, DisplayName: e.Type, Job: e.Type, MaxTries: e.MaxAttempts,
		Type: e.Type, Data: data, Metadata: e.metadata})
	if err != nil {
		return "", fmt.Errorf("encoding the payload of %s: %w", e.Type, err)
	}
	return string(text), nil
}
