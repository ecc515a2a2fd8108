package picture

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"math"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/resample"
)

// Rendition is one encoded picture.
type Rendition struct {
	// Spec is the index of the spec that asked for it.
	Spec          int
	Format        Format
	Width, Height int
	Frames        int
	Data          []byte
}

// Result is what Render made, in the order of the specs and their formats.
type Result struct {
	Header     Header
	Renditions []Rendition
	// Preview is the picture inside of 32×32, upright; nil unless asked for.
	Preview image.Image
}

// Generator makes renditions. The zero value has no limits and makes nothing; use
// DefaultLimits.
type Generator struct {
	Limits   Limits
	Encoding Encoding
	// Preview asks for Result.Preview.
	Preview bool
	// Animations says what becomes of animated pictures; "" is Resize.
	Animations Animations
	// Bounded refuses with ErrUnbounded what Header.Unbounded names, and what
	// the decoders refuse that bound themselves; nothing was decoded by another
	// one then. Somebody else may do it without Bounded, in a separate process.
	Bounded bool
}

// Animations says what becomes of animated pictures.
type Animations string

const (
	// Resize keeps them moving: each frame is made smaller.
	Resize Animations = "resize"
	// Copy takes the original as each rendition in its own format; those in
	// other formats show the first frame. Any number of frames will do.
	Copy Animations = "copy"
	// Still shows the first frame.
	Still Animations = "still"
)

const previewSide = 32

// errOutput begins the message that a limit on renditions was passed.
var errOutput = fmt.Errorf("%w: a rendition", ErrTooLarge)

// task is one spec on its way.
type task struct {
	spec    int // index; −1 is the preview
	formats []Format
	box     resample.Box // of the stored source
	part    rect         // of the upright picture
	attends bool
	w, h    int // upright
	step    float64
}

// Render makes all specs of one picture that is wholly in memory. It checks
// the limits first. The context is looked at between steps; a step takes a few
// hundred milliseconds at most within the default limits.
func (m Generator) Render(ctx context.Context, data []byte, specs []Spec) (Result, error) {
	if int64(len(data)) > m.Limits.FileBytes {
		return Result{}, fmt.Errorf("%w: %d bytes are more than %d", ErrTooLarge, len(data), m.Limits.FileBytes)
	}
	h, err := Inspect(data)
	if err != nil {
		return Result{}, err
	}
	if err := m.Check(h); err != nil {
		return Result{Header: h}, err
	}
	if m.Bounded && h.Unbounded() {
		return Result{Header: h}, ErrUnbounded
	}
	tasks, err := m.plan(h, specs)
	if err != nil {
		return Result{Header: h}, err
	}
	switch {
	case h.Frames == 1 || m.Animations == Still:
		return m.still(ctx, data, h, tasks)
	case m.Animations == Copy:
		return m.copied(ctx, data, h, tasks)
	}
	return m.animated(ctx, data, h, tasks)
}

// Check says whether a picture with this header may be decoded as far as is
// needed.
func (m Generator) Check(h Header) error {
	if m.Animations == Copy || m.Animations == Still {
		h.Frames = 1
	}
	return m.Limits.Check(h)
}

// render makes one spec in one format.
func (m Generator) render(data []byte, s Spec) ([]byte, error) {
	r, err := m.Render(context.Background(), data, []Spec{s})
	if err != nil {
		return nil, err
	}
	return r.Renditions[0].Data, nil
}

func (m Generator) plan(h Header, specs []Spec) ([]task, error) {
	width, height := h.Size()
	var tasks []task
	add := func(index int, s Spec) error {
		part, w, th, err := s.place(width, height)
		if err != nil {
			return err
		}
		if int64(w)*int64(th) > m.Limits.OutputPixels || max(w, th) > 16383 {
			return fmt.Errorf("%w of %d×%d", errOutput, w, th)
		}
		t := task{spec: index, formats: s.Formats, w: w, h: th, part: part, attends: s.attends(),
			box: stored(part, h.Orientation, width, height)}
		if len(t.formats) == 0 {
			t.formats = []Format{h.Format}
		}
		t.step = math.Min(float64(part.width)/float64(w), float64(part.height)/float64(th))
		tasks = append(tasks, t)
		return nil
	}
	for i, s := range specs {
		if err := add(i, s); err != nil {
			return nil, err
		}
	}
	if m.Preview {
		if err := add(-1, Spec{Width: previewSide, Height: previewSide, Mode: Fit}); err != nil {
			return nil, err
		}
	}
	return tasks, nil
}

func (m Generator) still(ctx context.Context, data []byte, h Header, tasks []task) (Result, error) {
	result := Result{Header: h}
	// Fine ones first: coarser ones are drawn from them.
	order := slices.Clone(tasks)
	slices.SortStableFunc(order, func(a, b task) int { return cmp.Compare(a.step, b.step) })
	if len(order) == 0 {
		return result, nil
	}
	base, err := open(data, h, order[0].step, m.Bounded)
	if err != nil {
		return result, err
	}
	if err := attend(base, h, order); err != nil {
		return result, err
	}
	drawn := []source{base}
	for _, t := range order {
		if err := ctx.Err(); err != nil {
			return result, context.Cause(ctx)
		}
		r, err := drawFrom(drawn, t, h.Orientation)
		if err != nil {
			return result, err
		}
		drawn = append(drawn, r)
		if err := m.finish(&result, t, r.upright(h.Orientation).image()); err != nil {
			return result, err
		}
	}
	slices.SortStableFunc(result.Renditions, func(a, b Rendition) int { return cmp.Compare(a.Spec, b.Spec) })
	return result, nil
}

func (m Generator) finish(result *Result, t task, img image.Image) error {
	if t.spec < 0 {
		result.Preview = img
		return nil
	}
	for _, f := range t.formats {
		data, err := m.Encoding.encode(img, f, result.Header)
		if err != nil {
			return err
		}
		result.Renditions = append(result.Renditions, Rendition{Spec: t.spec, Format: f, Width: t.w, Height: t.h,
			Frames: 1, Data: data})
	}
	return nil
}

// finer is how much finer than its target a picture must be to be drawn from:
// the filter's own softness is then not seen twice.
const finer = 1.9

// drawFrom draws from the coarsest picture that is fine enough; from the first,
// the base, where none is.
func drawFrom(drawn []source, t task, orientation int) (*raster, error) {
	best, bestStep := drawn[0], 0.0
	for _, s := range drawn[1:] {
		if step, ok := s.covers(t.box); ok && step > bestStep && step*finer <= t.step {
			best, bestStep = s, step
		}
	}
	w, h := t.w, t.h
	if transposed(orientation) {
		w, h = h, w
	}
	return best.draw(t.box, w, h)
}
