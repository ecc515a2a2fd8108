package media

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/gif"
	"slices"
	"sync"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// elsewhere notes what is rendered apart, and renders it, or fails.
type elsewhere struct {
	mu   sync.Mutex
	seen []picture.Format
	err  error
}

func (e *elsewhere) Render(ctx context.Context, m picture.Maker, data []byte, specs []picture.Spec) (picture.Result, error) {
	h, err := picture.Inspect(data)
	if err != nil {
		return picture.Result{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = append(e.seen, h.Format)
	if e.err != nil {
		return picture.Result{Header: h}, e.err
	}
	return m.Render(ctx, data, specs)
}

func gifOf(t testing.TB, frames int) []byte {
	t.Helper()
	var g gif.GIF
	for i := range frames {
		frame := image.NewPaletted(image.Rect(0, 0, 200, 100), color.Palette{color.Black, color.White})
		frame.Pix[i] = 1
		g.Image, g.Delay = append(g.Image, frame), append(g.Delay, 4)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, &g); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What decoders bound by themselves is rendered here, all else apart; one that
// ran away there is marked and not tried again.
func TestOnlyWhatIsUnboundedIsRenderedApart(t *testing.T) {
	other := &elsewhere{}
	s := newSite(t, jobstest.SQLite, Options{Apart: other})
	s.upload(1, "a.jpg", "image/jpeg", jpegOf(t, 400, 300))
	s.upload(2, "b.gif", "image/gif", gifOf(t, 3))
	s.upload(3, "c.png", "image/png", pngOf(t, solid(50, 40, color.NRGBA{1, 2, 3, 255})))
	for _, payload := range []string{`{"mediaFileId":1}`, `{"mediaFileId":2}`, `{"mediaFileId":3}`} {
		if out, err := s.run(payload, 1); err != nil || out.Made != 3 {
			t.Fatalf("%s: %+v, %v", payload, out, err)
		}
	}
	if !slices.Equal(other.seen, []picture.Format{picture.GIF}) {
		t.Errorf("apart were %v", other.seen)
	}
	other.err = picture.ErrTooLarge
	if _, err := s.run(`{"mediaFileId":2,"force":true}`, 1); !jobs.IsPermanent(err) || s.record(2).Error == "" {
		t.Errorf("one that ran away: %v, %+v", err, s.record(2))
	}
}

// media.animations: copies are the original, byte by byte.
func TestAnimationsMayBeCopied(t *testing.T) {
	s := newSite(t, jobstest.SQLite, Options{Animations: picture.Copy, Placeholder: true})
	data := gifOf(t, 700) // more than are resized
	s.upload(1, "a.gif", "image/gif", data)
	if out, err := s.run(`{"mediaFileId":1}`, 1); err != nil || out.Made != 3 {
		t.Fatalf("%+v, %v", out, err)
	}
	if r := s.record(1); !bytes.Equal(s.file("a-thumb.gif"), data) || r.Frames != 700 || r.BlurHash == "" {
		t.Errorf("%d bytes, %+v", len(s.file("a-thumb.gif")), r)
	}
	s.handler.Options.Animations = picture.Resize
	if _, err := s.run(`{"mediaFileId":1}`, 1); !jobs.IsPermanent(err) {
		t.Errorf("resized: %v", err)
	}
}
