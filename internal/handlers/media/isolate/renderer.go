package isolate

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"image"
	"os/exec"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
)

// Renderer starts processes that call Serve.
type Renderer struct {
	// Command is the program and its arguments.
	Command []string
	// Memory in bytes that a process may take beyond its own code; held to on
	// Linux, elsewhere aimed at.
	Memory int64
	// Time that a picture may take, on the clock and of the processor.
	Time time.Duration
}

// request is what a process is asked: to stamp a picture, or to make renditions.
type request struct {
	Maker  picture.Generator
	Specs  []picture.Spec
	Stamp  *picture.Watermark
	Data   []byte
	Memory int64
	Time   time.Duration
}

// reply is what it answers.
type reply struct {
	Renditions []picture.Rendition
	Stamped    []byte
	Preview    *image.NRGBA
	// Kind is one more than the index in kinds of the error that Message is;
	// 0 is another one. No message is success.
	Kind    int
	Message string
}

// kinds are the errors that callers tell apart.
var kinds = []error{picture.ErrUnsupported, picture.ErrTooLarge, picture.ErrCorrupt}

// failure is an error from the other side.
type failure struct {
	message string
	kind    error
}

func (f failure) Error() string { return f.message }
func (f failure) Unwrap() error { return f.kind }

// Render is picture.Maker.Render. A picture that takes more memory or time than
// it may is picture.ErrTooLarge.
func (r Renderer) Render(ctx context.Context, m picture.Generator, data []byte, specs []picture.Spec) (picture.Result,
	error) {
	header, err := picture.Inspect(data)
	if err != nil {
		return picture.Result{}, err
	}
	result := picture.Result{Header: header}
	answer, err := r.ask(ctx, request{Maker: m, Specs: specs, Data: data})
	if err != nil {
		return result, err
	}
	result.Renditions = answer.Renditions
	if answer.Preview != nil {
		result.Preview = answer.Preview
	}
	return result, nil
}

// Stamp is picture.Maker.Stamp, with the errors of Render.
func (r Renderer) Stamp(ctx context.Context, m picture.Generator, data []byte, w picture.Watermark) ([]byte, error) {
	answer, err := r.ask(ctx, request{Maker: m, Stamp: &w, Data: data})
	return answer.Stamped, err
}

// ask starts a process, and gives its answer or its error.
func (r Renderer) ask(ctx context.Context, q request) (reply, error) {
	q.Memory, q.Time = r.Memory, r.Time
	limited, cancel := context.WithTimeout(ctx, r.Time)
	defer cancel()
	var in, out bytes.Buffer
	if err := gob.NewEncoder(&in).Encode(q); err != nil {
		return reply{}, fmt.Errorf("asking for a picture: %w", err)
	}
	var said opening
	c := exec.CommandContext(limited, r.Command[0], r.Command[1:]...)
	c.Env = []string{"GOMAXPROCS=1", "GOTRACEBACK=none"}
	c.Stdin, c.Stdout, c.Stderr = &in, &out, &said
	if err := c.Run(); err != nil {
		if ctx.Err() != nil {
			return reply{}, context.Cause(ctx)
		}
		return reply{}, r.ended(limited, err, string(said))
	}
	var answer reply
	if err := gob.NewDecoder(&out).Decode(&answer); err != nil {
		return reply{}, fmt.Errorf("reading the picture of another process: %w", err)
	}
	return answer, answer.failure()
}

// failure is the other side's error, nil for success.
func (a reply) failure() error {
	if a.Message == "" {
		return nil
	}
	f := failure{message: a.Message}
	if a.Kind > 0 && a.Kind <= len(kinds) {
		f.kind = kinds[a.Kind-1]
	}
	return f
}

// ended says why a process ended without an answer.
func (r Renderer) ended(limited context.Context, err error, said string) error {
	var exit *exec.ExitError
	switch {
	case !errors.As(err, &exit):
		return fmt.Errorf("starting a process for a picture: %w", err)
	case limited.Err() != nil || outOfTime(exit):
		return fmt.Errorf("%w: decoding it took more than %s (media.isolate_time)", picture.ErrTooLarge, r.Time)
	case outOfMemory(said):
		return fmt.Errorf("%w: decoding it took more than %d MiB (media.isolate_memory)", picture.ErrTooLarge,
			r.Memory>>20)
	}
	return fmt.Errorf("%w: the process that decoded it ended (%w): %s", picture.ErrCorrupt, err,
		strings.TrimSpace(said))
}

// opening keeps the beginning of what a process says, where Go's runtime names its
// reason.
type opening []byte

const mostSaid = 1 << 10

func (t *opening) Write(p []byte) (int, error) {
	*t = append(*t, p[:min(len(p), mostSaid-len(*t))]...)
	return len(p), nil
}
