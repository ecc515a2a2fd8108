package picture

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/draw"
	"image/gif"
	"iter"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/resample"
)

// shown is one moment of an animation: the whole canvas. The next moment
// overwrites it.
type shown struct {
	canvas *image.NRGBA
	millis int
}

// strip collects one rendition of an animation.
type strip struct {
	task   task
	format Format
	frames []*image.Paletted // GIF
	stills [][]byte          // WebP, or the first frame in a still format
}

// moves says whether renditions in format f keep moving. Others show the first
// frame.
func moves(f Format) bool { return f == GIF || f == WebP }

func (m Generator) animated(ctx context.Context, data []byte, h Header, tasks []task) (Result, error) {
	result := Result{Header: h}
	moments, loop, err := openAnimation(data, h)
	if err != nil {
		return result, err
	}
	// Fine ones first: coarser ones are drawn from them.
	tasks = slices.Clone(tasks)
	slices.SortStableFunc(tasks, func(a, b task) int { return cmp.Compare(a.step, b.step) })
	var strips []*strip
	for _, t := range tasks {
		if t.spec < 0 {
			continue // the preview is a picture, no file
		}
		for _, f := range t.formats {
			strips = append(strips, &strip{task: t, format: f})
		}
	}
	var millis []int
	for moment, err := range moments {
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = m.addMoment(&result, strips, tasks, moment.canvas, len(millis) == 0)
		}
		if err != nil {
			return result, err
		}
		millis = append(millis, moment.millis)
	}
	for _, s := range strips {
		r, err := s.join(millis, loop)
		if err != nil {
			return result, err
		}
		result.Renditions = append(result.Renditions, r)
	}
	slices.SortStableFunc(result.Renditions, func(a, b Rendition) int { return cmp.Compare(a.Spec, b.Spec) })
	return result, nil
}

// addMoment draws one moment for each strip that still moves.
func (m Generator) addMoment(result *Result, strips []*strip, tasks []task, canvas *image.NRGBA, first bool) error {
	drawn := map[int]image.Image{}
	sources := []source{fromNRGBA(canvas, resample.Box{X1: float64(canvas.Rect.Dx()), Y1: float64(canvas.Rect.Dy())})}
	for _, t := range tasks {
		if t.spec < 0 && !first {
			continue
		}
		r, err := drawFrom(sources, t, result.Header.Orientation)
		if err != nil {
			return err
		}
		sources = append(sources, r)
		drawn[t.spec] = r.upright(result.Header.Orientation).image()
	}
	if first {
		result.Preview = drawn[-1]
	}
	for _, s := range strips {
		img := drawn[s.task.spec]
		if s.format == GIF {
			s.frames = append(s.frames, paletted(img.(*image.NRGBA)))
			continue
		}
		if !moves(s.format) && !first {
			continue
		}
		still, err := m.Encoding.encode(img, s.format, result.Header)
		if err != nil {
			return err
		}
		s.stills = append(s.stills, still)
	}
	return nil
}

func (s *strip) join(millis []int, loop int) (Rendition, error) {
	r := Rendition{Spec: s.task.spec, Format: s.format, Width: s.task.w, Height: s.task.h, Frames: len(millis)}
	var err error
	switch {
	case s.format == GIF:
		r.Data, err = joinGIF(s.frames, millis, loop)
	case s.format == WebP:
		r.Data, err = joinWebP(s.stills, millis, loop, r.Width, r.Height)
	case len(s.stills) > 0:
		r.Data, r.Frames = s.stills[0], 1
	}
	if err == nil && r.Data == nil {
		err = fmt.Errorf("%w: the animation shows nothing", ErrCorrupt)
	}
	return r, err
}

func joinGIF(frames []*image.Paletted, millis []int, loop int) ([]byte, error) {
	anim := gif.GIF{Image: frames, LoopCount: loop}
	for _, ms := range millis {
		anim.Delay = append(anim.Delay, (ms+5)/10)
		anim.Disposal = append(anim.Disposal, gif.DisposalBackground)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, &anim); err != nil {
		return nil, fmt.Errorf("encoding as gif: %w", err)
	}
	return b.Bytes(), nil
}

// openAnimation gives the moments of a GIF or WebP one by one. loop is 0 for
// ever; GIF's −1 (once) has no other name here.
func openAnimation(data []byte, h Header) (moments iter.Seq2[shown, error], loop int, err error) {
	if h.Format == WebP {
		return webpMoments(h), h.webp.loop, nil
	}
	var anim *gif.GIF
	_, err = guarded("GIF", func() (image.Image, error) {
		anim, err = gif.DecodeAll(bytes.NewReader(data))
		return nil, err
	})
	if err != nil {
		return nil, 0, err
	}
	return gifMoments(anim, h), anim.LoopCount, nil
}

func gifMoments(anim *gif.GIF, h Header) iter.Seq2[shown, error] {
	return func(yield func(shown, error) bool) {
		canvas := image.NewNRGBA(image.Rect(0, 0, h.StoredWidth, h.StoredHeight))
		for i, frame := range anim.Image {
			var before []byte
			if anim.Disposal[i] == gif.DisposalPrevious {
				before = slices.Clone(canvas.Pix)
			}
			draw.Draw(canvas, frame.Rect, frame, frame.Rect.Min, draw.Over)
			if !yield(shown{canvas, anim.Delay[i] * 10}, nil) {
				return
			}
			switch anim.Disposal[i] {
			case gif.DisposalPrevious:
				copy(canvas.Pix, before)
			case gif.DisposalBackground:
				draw.Draw(canvas, frame.Rect, image.Transparent, image.Point{}, draw.Src)
			}
		}
	}
}

// webpMoments decodes the frames one at a time, so that memory does not grow
// with their number.
func webpMoments(h Header) iter.Seq2[shown, error] {
	return func(yield func(shown, error) bool) {
		canvas := image.NewNRGBA(image.Rect(0, 0, h.StoredWidth, h.StoredHeight))
		for _, f := range h.webp.frames {
			img, err := f.decode()
			if err != nil {
				yield(shown{}, err)
				return
			}
			where := image.Rect(f.x, f.y, f.x+f.width, f.y+f.height)
			op := draw.Over
			if f.replace {
				op = draw.Src
			}
			draw.Draw(canvas, where, img, img.Bounds().Min, op)
			if !yield(shown{canvas, f.millis}, nil) {
				return
			}
			if f.dispose {
				draw.Draw(canvas, where, image.Transparent, image.Point{}, draw.Src)
			}
		}
	}
}

func (f webpFrame) decode() (image.Image, error) {
	file, err := f.file()
	if err != nil {
		return nil, err
	}
	h, err := Inspect(file)
	if err != nil {
		return nil, err
	}
	s, err := openWebP(file, h, 1, false)
	if err != nil {
		return nil, err
	}
	if r, ok := s.(*raster); ok {
		return studioNRGBA(r.image().(*image.NYCbCrA)), nil
	}
	return s.(fullDecode).img, nil
}

// copied gives the original as each rendition in its own format.
func (m Generator) copied(ctx context.Context, data []byte, h Header, tasks []task) (Result, error) {
	var others []task
	var copies []Rendition
	width, height := h.Size()
	for _, t := range tasks {
		rest := t
		rest.formats = nil
		for _, f := range t.formats {
			if f == h.Format && t.spec >= 0 {
				copies = append(copies, Rendition{Spec: t.spec, Format: f, Width: width, Height: height,
					Frames: h.Frames, Data: data})
			} else {
				rest.formats = append(rest.formats, f)
			}
		}
		if t.spec < 0 || rest.formats != nil {
			others = append(others, rest)
		}
	}
	result, err := m.still(ctx, data, h, others)
	result.Renditions = append(result.Renditions, copies...)
	slices.SortStableFunc(result.Renditions, func(a, b Rendition) int { return cmp.Compare(a.Spec, b.Spec) })
	return result, err
}

// firstFrame decodes an animation's first moment, or a GIF's only one.
func firstFrame(data []byte, h Header) (source, error) {
	if h.Format == WebP {
		h.webp.frames = h.webp.frames[:1]
		for moment, err := range webpMoments(h) {
			if err != nil {
				return nil, err
			}
			return newWhole(moment.canvas), nil
		}
	}
	return openImage("GIF", func() (image.Image, error) {
		frame, err := gif.Decode(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		canvas := image.NewNRGBA(image.Rect(0, 0, h.StoredWidth, h.StoredHeight))
		draw.Draw(canvas, frame.Bounds(), frame, frame.Bounds().Min, draw.Over)
		return canvas, nil
	})
}
