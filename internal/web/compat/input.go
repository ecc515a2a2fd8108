package compat

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// EnqueueRequest is a request with all names that a field may have, for the
// document of the API. Of each group one is enough.
type EnqueueRequest struct {
	Topic   string `json:"topic,omitempty"` // the type
	Type    string `json:"type,omitempty"`
	JobType string `json:"jobType,omitempty"`

	Payload json.RawMessage `json:"payload,omitempty"` // what the handler needs, an object
	Data    json.RawMessage `json:"data,omitempty"`

	Metadata json.RawMessage `json:"metadata,omitempty"` // who asked, from where
	Queue    string          `json:"queue,omitempty"`
	Priority int             `json:"priority,omitempty"` // higher first

	RunAt        *time.Time `json:"runAt,omitempty"`
	RunAt2       *time.Time `json:"run_at,omitempty"`
	ScheduledFor *time.Time `json:"scheduledFor,omitempty"`
	Delay        int        `json:"delay,omitempty"` // seconds from now

	MaxRetries   *int `json:"maxRetries,omitempty"` // starts − 1
	MaxRetries2  *int `json:"max_retries,omitempty"`
	MaxAttempts  *int `json:"maxAttempts,omitempty"` // starts
	MaxAttempts2 *int `json:"max_attempts,omitempty"`

	UniqueKey  string `json:"uniqueKey,omitempty"`
	UniqueKey2 string `json:"unique_key,omitempty"`
	ID         string `json:"id,omitempty"`
}

// names are the fields of /api/v1 by the names that the specifications have for
// them, in lower case: JSON's fields are read without regard to case.
var names = map[string]string{
	"topic": "type", "jobtype": "type", "data": "payload", "runat": "run_at", "scheduledfor": "run_at",
	"maxattempts": "max_attempts", "maxretries": "max_attempts", "max_retries": "max_attempts",
	"uniquekey": "unique_key",
}

// Normalise turns the body of an enqueue into the fields of /api/v1. What is no
// JSON object stays as it is, for its reader to refuse.
func Normalise(raw []byte) ([]byte, error) {
	var given map[string]json.RawMessage
	if json.Unmarshal(raw, &given) != nil || given == nil {
		return raw, nil
	}
	fields := make(map[string]json.RawMessage, len(given))
	for key, value := range given {
		lower := strings.ToLower(key)
		name, synonym := names[lower]
		if !synonym {
			name = key
		} else if string(value) == "null" {
			continue
		}
		if lower == "maxretries" || lower == "max_retries" {
			value = oneMore(value)
		}
		if other, twice := fields[name]; twice && string(other) != string(value) {
			return nil, jobs.Invalid(fmt.Errorf("%s and another field of the request say different things of its %s: "+
				"give one of them", key, name))
		}
		fields[name] = value
	}
	return json.Marshal(fields)
}

// oneMore makes starts of retries. What is no number stays, for its reader to
// refuse.
func oneMore(raw json.RawMessage) json.RawMessage {
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < 0 || n > 1<<30 {
		return raw
	}
	return json.RawMessage(strconv.Itoa(n + 1))
}

// Query turns the parameters of a list into those of /api/v1.
func Query(q url.Values) url.Values {
	if topics := q["topic"]; len(topics) > 0 {
		q["type"] = append(q["type"], topics...)
		q.Del("topic")
	}
	return q
}

// Field is the name of S1 for a field of /api/v1, for refusals.
func Field(name string) string {
	switch name {
	case "type":
		return "topic"
	case "run_at":
		return "runAt"
	case "max_attempts":
		return "maxRetries"
	case "unique_key":
		return "uniqueKey"
	}
	return name
}
