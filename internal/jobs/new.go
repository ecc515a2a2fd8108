package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// MaxPayload is how large a payload may be, in bytes. Larger things belong
// into a file or a table that the payload names.
const MaxPayload = 1 << 20

// Bounds of queues: what a name may have, and how many of them are distinguished. Rows of
// more queues than that are counted together, and no request or command makes more.
const (
	MaxQueueName = 191 // bytes, which every table of ours has space for
	MaxQueues    = 200
)

var queueName = regexp.MustCompile(fmt.Sprintf(`^[\w.:/-]{1,%d}$`, MaxQueueName))

// CheckQueue says whether name is one that a queue may have: settings, requests,
// commands, schedules, and the clients in Go and PHP all keep to it. Rows of other
// programs may have others; no worker claims from them.
func CheckQueue(name string) error {
	if queueName.MatchString(name) {
		return nil
	}
	return phrase.Errorf("the name of a queue has 1 to %d letters, digits and signs of . : / _ -, and %.60q is none",
		MaxQueueName, name)
}

// Spec is a job to be enqueued. Kind.Of makes one; the methods return a changed
// copy, so that calls can be chained:
//
//	sitemap.IndexNow.Of(sitemap.IndexNowPayload{}).In(30 * time.Second)
type Spec struct {
	Type  string
	Queue string // "" means the store's default
	// UUID names the job; "" lets the store choose. Enqueuing the same UUID
	// twice makes one job.
	UUID     string
	Data     json.RawMessage
	Metadata json.RawMessage
	Priority int
	// MaxAttempts is the row's own limit, which may be lower than the type's; 0
	// leaves it to the type.
	MaxAttempts int
	// RunAt is when it falls due; the zero time means Delay from the database's
	// now.
	RunAt time.Time
	Delay time.Duration
	// UniqueKey keeps a second job out while one with this key waits or runs.
	UniqueKey string

	err error
}

// In makes the job due after d, by the database's clock.
func (n Spec) In(d time.Duration) Spec { n.Delay, n.RunAt = d, time.Time{}; return n }

// At makes the job due at t.
func (n Spec) At(t time.Time) Spec { n.RunAt, n.Delay = t, 0; return n }

// On puts the job on queue q.
func (n Spec) On(q string) Spec { n.Queue = q; return n }

// WithPriority orders the job inside its queue, higher first.
func (n Spec) WithPriority(p int) Spec { n.Priority = p; return n }

// WithMaxAttempts sets the row's own limit of starts.
func (n Spec) WithMaxAttempts(limit int) Spec { n.MaxAttempts = limit; return n }

// Unique keeps a second job out while one with this key waits or runs:
// enqueuing then returns the job that is there.
func (n Spec) Unique(key string) Spec { n.UniqueKey = key; return n }

// Named gives the job its UUID.
func (n Spec) Named(uuid string) Spec { n.UUID = uuid; return n }

// WithMetadata attaches who asked and from where. It must encode to a JSON
// object.
func (n Spec) WithMetadata(metadata any) Spec {
	data, err := json.Marshal(metadata)
	if err != nil {
		n.err = errors.Join(n.err, fmt.Errorf("encoding the metadata of %s: %w", n.Type, err))
	}
	n.Metadata = data
	return n
}

// Check says what is wrong with the job, before it reaches a table.
func (n Spec) Check() error {
	words := []string{n.Type, n.UniqueKey, n.UUID}
	switch {
	case n.err != nil:
		return n.err
	case n.Type == "":
		return phrase.Errorf("a job needs a type, for example sitemap.generate")
	case n.Queue != "" && CheckQueue(n.Queue) != nil:
		return CheckQueue(n.Queue)
	case slices.ContainsFunc(words, func(s string) bool { return len(s) > 191 }):
		return phrase.Errorf("type, unique key and UUID of a job may have 191 bytes each; %.40q has more", n.Type)
	case len(n.Data)+len(n.Metadata) > MaxPayload:
		return tooLarge(n.Type, len(n.Data)+len(n.Metadata))
	case !isJSON(n.Data):
		return phrase.Errorf("the payload of %s is not JSON in UTF-8", n.Type)
	case !isJSON(n.Metadata):
		return phrase.Errorf("the metadata of %s is not JSON in UTF-8", n.Type)
	case slices.ContainsFunc(words, func(s string) bool { return !word(s) }):
		return phrase.Errorf("type, unique key and UUID of a job are UTF-8 without NUL; those of %q are not", n.Type)
	case n.Delay < 0 || n.MaxAttempts < 0:
		return phrase.Errorf("delay and attempts of %s cannot be negative", n.Type)
	}
	return nil
}

// isJSON says that data is JSON in UTF-8, or nothing.
func isJSON(data json.RawMessage) bool {
	return len(data) == 0 || utf8.Valid(data) && json.Valid(data)
}

// word says that every database takes s as a short text.
func word(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// Receipt says what became of one enqueued job.
type Receipt struct {
	ID   int64
	UUID string
	// Existing is true when a job with the same UUID or unique key was there
	// already; ID and UUID are that job's.
	Existing bool
}

// Enqueuer puts jobs into the queue: all of them, or none.
type Enqueuer interface {
	Enqueue(ctx context.Context, jobs ...Spec) ([]Receipt, error)
}

func tooLarge(kind string, size int) error {
	return tooLargeError{phrase.Errorf("the payload of %s has %d bytes, %d are allowed: put large things into a file "+
		"and name it", kind, size, MaxPayload)}
}
