package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Progress is how far a running job is.
type Progress struct {
	Done  int64  `json:"done"`
	Total int64  `json:"total,omitempty"` // 0 when unknown
	Note  string `json:"note,omitempty"`
}

// LogLine is one line that a handler wrote for people to read beside the job.
type LogLine struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// maxLogLines bounds what one run may keep in memory between two flushes.
const maxLogLines = 1000

// Run collects what a handler says while it runs. The worker makes one for
// each run; tests and inline execution make their own with NewRun.
type Run struct {
	now func() time.Time

	mu        sync.Mutex
	progress  *Progress
	lines     []LogLine
	dropped   int
	result    json.RawMessage
	ignored   []string // fields of the payload that the type does not have
	followUps []Spec
	probe     retryAfterError // the zero value: none failed
}

// NewRun returns an empty run. now stamps log lines.
func NewRun(now func() time.Time) *Run { return &Run{now: now} }

type runKey struct{}

// WithRun makes what handlers say through the context arrive in r.
func WithRun(ctx context.Context, r *Run) context.Context {
	return context.WithValue(ctx, runKey{}, r)
}

func runOf(ctx context.Context) *Run {
	if r, ok := ctx.Value(runKey{}).(*Run); ok {
		return r
	}
	return NewRun(func() time.Time { return time.Time{} }) // outside a run nobody listens
}

// lastWord is less than a handler has to return in (returnTime).
const lastWord = 200 * time.Millisecond

// Outlasting returns a context that ends a moment after ctx: for writing down
// what a handler has done when it is asked to stop. The moment is short enough
// for the handler to return before its worker leaves it behind, whatever the
// database does.
func Outlasting(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() { time.AfterFunc(lastWord, cancel) })
	return longer, func() { forget(); cancel() }
}

// Report says how far the running job is; people see it live. total is 0 when
// unknown. It is cheap: call it as often as you like.
func Report(ctx context.Context, done, total int64, note string) {
	r := runOf(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = &Progress{Done: done, Total: total, Note: note}
}

// Logf adds a line to the running job's log, which people read beside the job.
func Logf(ctx context.Context, format string, args ...any) {
	r := runOf(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lines) >= maxLogLines {
		r.dropped++
		return
	}
	r.lines = append(r.lines, LogLine{At: r.now(), Text: fmt.Sprintf(format, args...)})
}

// SetResult leaves what the job found out or made; it is stored as JSON and
// shown to people. The last call counts.
func SetResult(ctx context.Context, result any) error {
	data, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("encoding the job's result: %w", err)
	}
	r := runOf(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result = data
	return nil
}

// FollowUp enqueues jobs in the transaction that completes this one: both
// happen, or neither. Nothing is enqueued when the run fails.
func FollowUp(ctx context.Context, next ...Spec) {
	r := runOf(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.followUps = append(r.followUps, next...)
}

// ProbeFailed notes that the running job was let through to try a dependency
// that was out, and found it out still. Unless the job succeeds or its error
// is permanent, it is released as WaitFor says: the try was ours, not its own.
func ProbeFailed(ctx context.Context, dependency string, d time.Duration) {
	r := runOf(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.probe = retryAfterError{delay: max(d, 0), dependency: dependency}
}

// failedProbe returns what ProbeFailed noted; ok is false when it noted nothing.
func (r *Run) failedProbe() (delay time.Duration, dependency string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.probe.delay, r.probe.dependency, r.probe.dependency != ""
}

// Snapshot returns the latest progress (nil when none was reported) and takes
// the log lines that came since the last call.
func (r *Run) Snapshot() (*Progress, []LogLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	if r.dropped > 0 {
		lines = append(lines, LogLine{At: r.now(), Text: fmt.Sprintf("(%d more lines were dropped)", r.dropped)})
		r.dropped = 0
	}
	if r.progress == nil {
		return nil, lines
	}
	p := *r.progress
	return &p, lines
}

// unread puts lines back that Snapshot took and nobody could store.
func (r *Run) unread(lines []LogLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(lines[:len(lines):len(lines)], r.lines...)
}

// Result returns what the handler left: its result and the jobs to follow.
func (r *Run) Result() (json.RawMessage, []Spec) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return withIgnored(r.result, r.ignored), r.followUps
}

// redactIgnored takes secrets out of the names of ignored fields: others chose them.
func (r *Run) redactIgnored(redact func(string) string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.ignored {
		r.ignored[i] = redact(r.ignored[i])
	}
}

// withIgnored adds the names of ignored fields to a result, where it is an object
// or nothing.
func withIgnored(result json.RawMessage, ignored []string) json.RawMessage {
	if len(ignored) == 0 {
		return result
	}
	keys := map[string]json.RawMessage{}
	if len(result) > 0 && (json.Unmarshal(result, &keys) != nil || keys == nil) {
		return result
	}
	names, err := json.Marshal(ignored)
	if err != nil {
		return result
	}
	keys["ignored"] = names
	return encodeKeys(keys)
}

// Summarizer is a result that says in sentences what it holds.
type Summarizer interface{ Summary() phrase.Summary }

// Results says that jobs of a type that Handle or HandleInternal has registered leave
// results of type R, so that people can read them. It panics when the type is not
// registered.
func Results[R Summarizer, P any](r *Registry, k Kind[P]) {
	e, known := r.entries[k.Name]
	if !known {
		panic(fmt.Sprintf("jobs: results of the unknown type %q", k.Name))
	}
	e.Summary = summaryOf[R]
	r.entries[k.Name] = e
}

// summaryOf reads a result. What the queue itself adds to results is said, too.
func summaryOf[R Summarizer](data json.RawMessage) (phrase.Summary, error) {
	var ours struct {
		Skipped string   `json:"skipped"`
		Ignored []string `json:"ignored"`
	}
	var keys map[string]json.RawMessage
	var s phrase.Summary
	if json.Unmarshal(data, &keys) == nil && json.Unmarshal(data, &ours) == nil && len(keys) == 1 &&
		ours.Skipped != "" {
		s.Say("It did not run: %s.", ours.Skipped)
		return s, nil
	}
	var result R
	if len(keys) != 1 || ours.Ignored == nil { // else the handler left nothing
		if err := json.Unmarshal(data, &result); err != nil {
			return s, fmt.Errorf("reading the result: %w", err)
		}
		s = result.Summary()
	}
	if len(ours.Ignored) > 0 {
		s.Say("Fields of the payload that the type does not have were ignored: %s.", strings.Join(ours.Ignored, ", "))
	}
	return s, nil
}
