package tables

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

var namespace = uuid.MustParse("6f2b1c0e-8f5e-5b1f-9a53-0d6f3c1f7a10")

// NamedUUID is always the same for a name.
func NamedUUID(name string) string { return uuid.NewSHA1(namespace, []byte(name)).String() }

// DerivedUUID names a row that carries no UUID: always the same for one row. Those of rows
// made one after the other follow each other, as random ones would be written all over
// the history's index. It is of version 8, for layouts of one's own: the second in which the row was made,
// 12 bits of the table's name, and the row's number.
func DerivedUUID(table string, id, created int64) string {
	name := fnv.New32a()
	_, _ = name.Write([]byte(table)) // it has no error
	var u uuid.UUID
	binary.BigEndian.PutUint64(u[:8], uint64(created)<<16|8<<12|uint64(name.Sum32()&0xfff))
	binary.BigEndian.PutUint64(u[8:], 1<<63|uint64(id)&(1<<62-1))
	return u.String()
}

// Derived says whether a UUID may be one of DerivedUUID's: those of our jobs are of
// version 7, Laravel's random.
func Derived(text string) bool {
	id, err := uuid.Parse(text)
	return err == nil && id.Version() == 8
}

// ErrOversize marks the fault of a payload that was not read whole.
var ErrOversize = errors.New("the payload is too large")

// Known says whether a type is registered here.
func (s *Tables) Known(name string) bool {
	_, ok := s.Options.Registry.Lookup(name)
	return ok
}

// Claimable decides in Go whose row c is and completes it. Rows that are PHP's, or
// of a type that is not registered here, are not ours.
func (s *Tables) Claimable(queue string, c *Candidate) bool {
	var e jobs.Envelope
	var origin jobs.Origin
	var err error
	if c.Size > Oversize {
		e.Type = PeekType(c.Payload)
		if !s.Known(e.Type) && c.Name != "" {
			e.Type = c.Name
		}
		if !s.Known(e.Type) {
			return false
		}
		c.Fault = fmt.Errorf("%w: it has %d bytes, %d are allowed; put large things into a file and name it",
			ErrOversize, c.Size, jobs.MaxPayload)
	} else if e, origin, err = jobs.Parse(c.Payload, s.Known); origin != jobs.Ours {
		if !s.Owns(s.Known, origin, e.Type, c.Name, queue) {
			return false
		}
		if e.Type = c.Name; origin == jobs.Malformed {
			c.Fault = err
		}
	}
	s.complete(queue, c, e)
	return true
}

// Owns says whether a row is ours by what its payload is and names, and by its
// name column, which extended rows have. known says which types are.
func (s *Tables) Owns(known func(string) bool, origin jobs.Origin, kind, name, queue string) bool {
	switch origin {
	case jobs.Ours:
		return true
	case jobs.Foreign:
		return false
	case jobs.Malformed:
		return (s.Layout.Name() == Extended || slices.Contains(s.Options.OwnQueues, queue)) &&
			(name == "" || known(name))
	}
	return known(kind) || known(name)
}

// complete fills in what the worker gets to see.
func (s *Tables) complete(queue string, c *Candidate, e jobs.Envelope) {
	entry, registered := s.Options.Registry.Lookup(e.Type)
	if registered {
		e.Type, c.Policy = entry.Type, entry.Policy
	} else {
		e.Type, c.Policy = "unreadable", jobs.DefaultPolicy()
	}
	if e.UUID == "" || len(e.UUID) > 191 || e.UUID != ValidText(e.UUID) {
		e.UUID = DerivedUUID(s.Layout.Table().Plain, c.ID, c.Created)
	}
	limit := c.Policy.Attempts(e.MaxTries, c.MaxAttempts)
	c.Rescued = c.Locked.Valid || c.Status == "processing"
	c.Job = jobs.Job{ID: c.ID, UUID: e.UUID, Type: e.Type, Queue: queue, Data: orObject(e.Data),
		Metadata: orObject(e.Metadata), Attempt: c.Attempts + 1, MaxAttempts: limit,
		Priority: c.Priority, Timeout: e.Timeout, RunAt: time.Unix(c.Due, 0).UTC(),
		EnqueuedAt: time.Unix(c.Created, 0).UTC()}
	full := s.Layout.Table().AttemptsLimit
	if c.Fault == nil && (c.Attempts >= limit || full > 0 && c.Attempts >= full) {
		c.Fault = fmt.Errorf("the job was started %d times and may be started %d times; its last run ended without a "+
			"result, so its worker died or was cut off", c.Attempts, limit)
	}
	if full > 0 && c.Attempts >= full {
		c.Job.Attempt = c.Attempts
	}
}

func orObject(data json.RawMessage) json.RawMessage {
	if len(data) == 0 {
		return json.RawMessage("{}")
	}
	return data
}

// PeekType finds the type in the beginning of a payload that is too large to be
// read whole.
func PeekType(beginning []byte) string {
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

// DedupKey is equal for jobs that one run can stand for.
func (c *Candidate) DedupKey() string {
	var compact bytes.Buffer
	if json.Compact(&compact, c.Job.Data) != nil {
		return ""
	}
	var value any // keys in one order, as PHP and Go write them in theirs
	if json.Unmarshal(c.Job.Data, &value) == nil {
		if sorted, err := json.Marshal(value); err == nil {
			return c.Job.Type + " " + string(sorted)
		}
	}
	return c.Job.Type + " " + compact.String()
}

// Confidential says that the history keeps the data of failed jobs only.
func (s *Tables) Confidential(kind string) bool {
	entry, _ := s.Options.Registry.Lookup(kind)
	return entry.Policy.Confidential
}
