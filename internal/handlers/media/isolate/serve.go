package isolate

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"io"
	"runtime/debug"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
)

// Serve is the other process: it reads one request, sets its own limits, renders
// or stamps, and writes the reply. render is picture.Maker.Render, but in tests.
func Serve(in io.Reader, out io.Writer, render func(picture.Generator, context.Context, []byte, []picture.Spec) (
	picture.Result, error)) error {
	var q request
	if err := gob.NewDecoder(in).Decode(&q); err != nil {
		return fmt.Errorf("reading what to render: %w", err)
	}
	debug.SetMemoryLimit(q.Memory / 2)
	if err := limit(q.Memory, q.Time); err != nil {
		return fmt.Errorf("limiting a process for a picture: %w", err)
	}
	var answer reply
	if q.Stamp != nil {
		stamped, err := q.Maker.Stamp(q.Data, *q.Stamp)
		answer = newReply(picture.Result{}, err)
		answer.Stamped = stamped
	} else {
		answer = newReply(render(q.Maker, context.Background(), q.Data, q.Specs))
	}
	if outOfMemory(answer.Message) { // of a library that runs as WebAssembly: Go's own ends the process
		return errors.New(answer.Message)
	}
	if err := gob.NewEncoder(out).Encode(answer); err != nil {
		return fmt.Errorf("answering with a picture: %w", err)
	}
	return nil
}

// outOfMemory knows the words of Go and of the system.
func outOfMemory(said string) bool {
	return strings.Contains(said, "out of memory") || strings.Contains(said, "cannot allocate memory")
}

func newReply(result picture.Result, err error) reply {
	if err != nil {
		r := reply{Message: err.Error()}
		for i, kind := range kinds {
			if errors.Is(err, kind) {
				r.Kind = i + 1
				break
			}
		}
		return r
	}
	r := reply{Renditions: result.Renditions}
	if p := result.Preview; p != nil {
		r.Preview = image.NewNRGBA(image.Rect(0, 0, p.Bounds().Dx(), p.Bounds().Dy()))
		draw.Draw(r.Preview, r.Preview.Rect, p, p.Bounds().Min, draw.Src)
	}
	return r
}
