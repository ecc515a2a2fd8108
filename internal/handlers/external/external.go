package external

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Command is a program that jobs may run.
type Command struct {
	Program string   // its file
	Args    []string // all of them
	Dir     string   // where it runs
	// Env are its variables. PATH is Config.Path where it is not given.
	Env map[string]string
	// User runs it as another user (Unix; the service must be root); "" is the
	// service's own.
	User string
	// Timeout of a run; DefaultTimeout when 0.
	Timeout time.Duration
	// Memory is the most address space that it may take (Linux); 0 is any.
	Memory int64
	// Output is how many bytes of its output are kept, the last ones; DefaultOutput
	// when 0.
	Output int
}

// Call is a request that jobs may send.
type Call struct {
	URL    string
	Method string // POST where there is a Body, else GET
	Body   string
	Header map[string]string
	// Secret signs the request by the Standard Webhooks specification; "" does not.
	Secret string
	// Expect are the statuses of success; none is 200 to 299.
	Expect  []int
	Timeout time.Duration
	Output  int // how many bytes of the answer are kept, the first ones
}

// The limits of entries that name none, and of the types as a whole.
const (
	DefaultTimeout = 5 * time.Minute
	DefaultOutput  = 16 << 10
	MaxTimeout     = 4 * time.Hour
	maxOutput      = 1 << 20
)

// Config is what a Handler needs.
type Config struct {
	Commands map[string]Command
	Calls    map[string]Call
	Client   *http.Client // package outbound's: needed for Calls
	// Sign writes the headers of a signature.
	Sign   func(h http.Header, secret, id string, at time.Time, body []byte) error
	Path   string // PATH of programs
	Now    func() time.Time
	Logger *slog.Logger
}

// Handler runs this package's types.
type Handler struct{ c Config }

// New checks c. What is wrong names the entry.
func New(c Config) (*Handler, error) {
	for name, command := range c.Commands {
		if err := command.check(); err != nil {
			return nil, fmt.Errorf("external.commands.%s: %w", name, err)
		}
	}
	for name, call := range c.Calls {
		if err := call.check(); err != nil {
			return nil, fmt.Errorf("external.calls.%s: %w", name, err)
		}
	}
	if c.Now == nil || len(c.Calls) > 0 && (c.Client == nil || c.Sign == nil) {
		return nil, errors.New("external: Now is required, and Client and Sign for calls")
	}
	return &Handler{c}, nil
}

func (c Command) check() error {
	switch {
	case !filepath.IsAbs(c.Program):
		return fmt.Errorf("program must be the whole path of a file, not %q", c.Program)
	case c.Dir != "" && !filepath.IsAbs(c.Dir):
		return fmt.Errorf("dir must be the whole path of a folder, not %q", c.Dir)
	case c.Memory < 0:
		return errors.New("memory cannot be negative")
	}
	return checkLimits(c.Timeout, c.Output)
}

func (c Call) check() error {
	if !strings.HasPrefix(c.URL, "https://") && !strings.HasPrefix(c.URL, "http://") {
		return fmt.Errorf("url must begin with https:// or http://, not %q", c.URL)
	}
	for _, status := range c.Expect {
		if status < 100 || status > 599 {
			return fmt.Errorf("expect has %d, which is no status of HTTP", status)
		}
	}
	return checkLimits(c.Timeout, c.Output)
}

func checkLimits(timeout time.Duration, output int) error {
	switch {
	case timeout < 0 || timeout > MaxTimeout:
		return fmt.Errorf("timeout must be at most %v", MaxTimeout)
	case output < 0 || output > maxOutput:
		return fmt.Errorf("output must be at most %d bytes", maxOutput)
	}
	return nil
}

// Payload names an entry of the configuration.
type Payload struct {
	Name string `json:"name" required:"true" synonyms:"command,call"`
}

// Run and Request are the types. An entry's own time limit is within theirs.
var (
	Run = jobs.Kind[Payload]{Name: "command.run", Policy: jobs.Policy{MaxAttempts: 3, Timeout: MaxTimeout,
		Backoff: jobs.Steps(60*time.Second, 120*time.Second, 240*time.Second)}}
	Request = jobs.Kind[Payload]{Name: "http.call", Policy: jobs.Policy{MaxAttempts: 3, Timeout: MaxTimeout,
		Backoff: jobs.Steps(60*time.Second, 120*time.Second, 240*time.Second)}}
)

// Register adds the types that have an entry.
func (h *Handler) Register(r *jobs.Registry) {
	if len(h.c.Commands) > 0 {
		jobs.Handle(r, Run, h.run)
		jobs.Results[CommandResult](r, Run)
		jobs.Restrict(r, Run, jobs.Restriction[Payload]{Refuse: only(h.c.Commands)})
	}
	if len(h.c.Calls) > 0 {
		jobs.Handle(r, Request, h.call)
		jobs.Results[CallResult](r, Request)
		jobs.Restrict(r, Request, jobs.Restriction[Payload]{Refuse: only(h.c.Calls)})
	}
}

// only refuses names that the configuration does not have.
func only[E any](entries map[string]E) func(json.RawMessage, Payload) error {
	return func(_ json.RawMessage, p Payload) error {
		if _, allowed := entries[p.Name]; !allowed {
			return phrase.Errorf("%.80q is not allowed by the configuration (external); allowed are %s", p.Name,
				strings.Join(slices.Sorted(maps.Keys(entries)), ", "))
		}
		return nil
	}
}

// tail keeps the last bytes of what is written to it.
type tail struct {
	most    int
	kept    []byte
	dropped int64
}

// Write implements io.Writer; it never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.most; over > 0 {
		t.dropped += int64(over)
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// text is what was kept as text for people.
func (t *tail) text() string {
	text := jobs.PlainText(string(t.kept), t.most, '\n', '\t')
	if t.dropped > 0 {
		text = fmt.Sprintf("(%d bytes before this were cut)\n%s", t.dropped, text)
	}
	return text
}
