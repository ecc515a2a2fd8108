package sqlstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// namespace of the UUIDs that are derived for rows without one.
var namespace = uuid.MustParse("6f2b1c0e-8f5e-5b1f-9a53-0d6f3c1f7a10")

// DerivedUUID names a row that carries no UUID: always the same for one row.
func DerivedUUID(table string, id, created int64) string {
	return uuid.NewSHA1(namespace, fmt.Appendf(nil, "%s/%d/%d", table, id, created)).String()
}

// derived says whether a UUID may be one of DerivedUUID's: those of our own
// jobs are random, not of version 5.
func derived(text string) bool {
	id, err := uuid.Parse(text)
	return err == nil && id.Version() == 5
}

// errOversize marks the fault of a payload that was not read whole.
var errOversize = errors.New("the payload is too large")

func (s *Tables) known(name string) bool {
	_, ok := s.Options.Registry.Lookup(name)
	return ok
}

// claimable decides in Go whose row c is and completes it. Rows that are PHP's, or
// of a type that nobody here has registered, are not ours.
func (s *Tables) claimable(queue string, c *Candidate) bool {
	var e jobs.Envelope
	var origin jobs.Origin
	var err error
	if c.size > oversize {
		e.Type = peekType(c.payload)
		if !s.known(e.Type) && c.name != "" {
			e.Type = c.name
		}
		if !s.known(e.Type) {
			return false
		}
		c.fault = fmt.Errorf("%w: it has %d bytes, %d are allowed; put large things into a file and name it", errOversize, c.size, jobs.MaxPayload)
	} else if e, origin, err = jobs.Parse(c.payload, s.known); origin != jobs.Ours {
		if !s.owns(origin, e.Type, c.name, queue) {
			return false
		}
		if e.Type = c.name; origin == jobs.Malformed {
			c.fault = err
		}
	}
	s.complete(queue, c, e)
	return true
}

// owns says whether a row is ours by what its payload is and names, and by its
// name column, which extended rows have.
func (s *Tables) owns(origin jobs.Origin, kind, name, queue string) bool {
	switch origin {
	case jobs.Ours:
		return true
	case jobs.Foreign:
		return false
	case jobs.Malformed:
		return (s.Layout.Name() == Extended || slices.Contains(s.Options.OwnQueues, queue)) && (name == "" || s.known(name))
	}
	return s.known(kind) || s.known(name)
}

// complete fills in what the worker gets to see.
func (s *Tables) complete(queue string, c *Candidate, e jobs.Envelope) {
	entry, registered := s.Options.Registry.Lookup(e.Type)
	if registered {
		e.Type, c.policy = entry.Type, entry.Policy
	} else {
		e.Type, c.policy = "unreadable", jobs.DefaultPolicy()
	}
	if e.UUID == "" || len(e.UUID) > 191 || e.UUID != ValidText(e.UUID) {
		e.UUID = DerivedUUID(s.Layout.Table().plain, c.id, c.created)
	}
	limit := c.policy.Attempts(e.MaxTries, c.MaxAttempts)
	c.rescued = c.locked.Valid || c.status == "processing"
	c.job = jobs.Job{ID: c.id, UUID: e.UUID, Type: e.Type, Queue: queue, Data: orObject(e.Data), Metadata: orObject(e.Metadata), Attempt: c.attempts + 1, MaxAttempts: limit,
		Priority: c.priority, Timeout: e.Timeout, RunAt: time.Unix(c.due, 0).UTC(), EnqueuedAt: time.Unix(c.created, 0).UTC()}
	full := s.Layout.Table().attemptsLimit
	if c.fault == nil && (c.attempts >= limit || full > 0 && c.attempts >= full) {
		c.fault = fmt.Errorf("the job was started %d times and may be started %d times; its last run ended without a word, so its worker died or was cut off", c.attempts, limit)
	}
	if full > 0 && c.attempts >= full {
		c.job.Attempt = c.attempts
	}
}

func orObject(data json.RawMessage) json.RawMessage {
	if len(data) == 0 {
		return json.RawMessage("{}")
	}
	return data
}

// peekType finds the type in the beginning of a payload that is too large to be
// read whole.
func peekType(beginning []byte) string {
	d := json.NewDecoder(bytes.NewReader(beginning))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	found := map[string]string{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break
		}
		var word string
		if name, ok := key.(string); ok && json.Unmarshal(value, &word) == nil {
			found[name] = word
		}
	}
	for _, key := range []string{"job", "type", "topic", "jobType"} {
		if found[key] != "" {
			return found[key]
		}
	}
	return ""
}

// dedupKey is equal for jobs that one run can stand for.
func (c *Candidate) dedupKey() string {
	var compact bytes.Buffer
	if json.Compact(&compact, c.job.Data) != nil {
		return ""
	}
	var value any // keys in one order, as PHP and Go write them in theirs
	if json.Unmarshal(c.job.Data, &value) == nil {
		if sorted, err := json.Marshal(value); err == nil {
			return c.job.Type + " " + string(sorted)
		}
	}
	return c.job.Type + " " + compact.String()
}

// confidential says that the history keeps the data of failed jobs only.
func (s *Tables) confidential(kind string) bool {
	entry, _ := s.Options.Registry.Lookup(kind)
	return entry.Policy.Confidential
}
