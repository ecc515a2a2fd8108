package media

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/gen2brain/jpegn"
	"github.com/gen2brain/webp"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// elsewhere notes what is done apart, and does it, or fails.
type elsewhere struct {
	mu       sync.Mutex
	rendered []picture.Format
	stamped  []picture.Format
	err      error
}

func (e *elsewhere) note(list *[]picture.Format, data []byte) error {
	h, err := picture.Inspect(data)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	*list = append(*list, h.Format)
	return e.err
}

func (e *elsewhere) Render(ctx context.Context, m picture.Generator, data []byte, specs []picture.Spec) (
	picture.Result, error) {
	if err := e.note(&e.rendered, data); err != nil {
		return picture.Result{}, err
	}
	return m.Render(ctx, data, specs)
}

func (e *elsewhere) Stamp(_ context.Context, m picture.Generator, data []byte, w picture.Watermark) ([]byte, error) {
	if err := e.note(&e.stamped, data); err != nil {
		return nil, err
	}
	return m.Stamp(data, w)
}

func progressiveOf(t testing.TB, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpegn.Encode(&b, solid(w, h, color.NRGBA{9, 120, 40, 255}), &jpegn.EncodeOptions{
		Progressive: true}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// cmyk is a picture that Go ships.
func cmyk(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(runtime.GOROOT(), "src", "image", "testdata", "video-001.cmyk.jpeg"))
	if err != nil {
		t.Fatal(err)
	}
	return data
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
	// hardly made smaller: refused by the reduced decoder
	s.upload(4, "d.jpg", "image/jpeg", progressiveOf(t, 400, 300))
	s.upload(5, "e.jpg", "image/jpeg", progressiveOf(t, 4000, 3000))
	for id := 1; id <= 5; id++ {
		payload := fmt.Sprintf(`{"mediaFileId":%d}`, id)
		if out, err := s.run(payload, 1); err != nil || out.Made != 3 {
			t.Fatalf("%s: %+v, %v", payload, out, err)
		}
	}
	if want := []picture.Format{picture.GIF, picture.JPEG}; !slices.Equal(other.rendered, want) {
		t.Errorf("apart were %v, want %v", other.rendered, want)
	}
	other.err = picture.ErrTooLarge
	if _, err := s.run(`{"mediaFileId":2,"force":true}`, 1); !jobs.IsPermanent(err) || s.record(2).Error == "" {
		t.Errorf("one that ran away: %v, %+v", err, s.record(2))
	}
}

// Stamping keeps to the same rule, for the picture and for the mark.
func TestOnlyWhatIsUnboundedIsStampedApart(t *testing.T) {
	var lossless bytes.Buffer
	if err := webp.Encode(&lossless, solid(90, 60, color.NRGBA{9, 9, 200, 255}), webp.Options{
		Lossless: true}); err != nil {
		t.Fatal(err)
	}
	interlaced, err := os.ReadFile("picture/testdata/interlaced.png")
	if err != nil {
		t.Fatal(err)
	}
	plain := jpegOf(t, 90, 60)
	mark := pngOf(t, solid(20, 20, color.NRGBA{255, 0, 0, 255}))
	for name, c := range map[string]struct {
		url, mime  string
		data, mark []byte
		apart      bool
	}{
		"jpeg":                      {"a.jpg", "image/jpeg", plain, mark, false},
		"png":                       {"a.png", "image/png", mark, mark, false},
		"jpeg, progressive":         {"a.jpg", "image/jpeg", progressiveOf(t, 90, 60), mark, true},
		"jpeg, CMYK":                {"a.jpg", "image/jpeg", cmyk(t), mark, true},
		"png, interlaced":           {"a.png", "image/png", interlaced, mark, true},
		"webp, lossless":            {"a.webp", "image/webp", lossless.Bytes(), mark, true},
		"jpeg, the mark interlaced": {"a.jpg", "image/jpeg", plain, interlaced, true},
	} {
		t.Run(name, func(t *testing.T) {
			other := &elsewhere{}
			s := newSite(t, jobstest.SQLite, Options{Apart: other, Watermark: &Watermark{Source: "mark.png"}})
			s.upload(1, c.url, c.mime, c.data)
			s.upload(2, "mark.png", "image/png", c.mark)
			if _, err := s.run(`{"mediaFileId":1}`, 1); err != nil {
				t.Fatal(err)
			}
			if !picture.Stamped(s.file(c.url)) || len(other.stamped) == 1 != c.apart {
				t.Errorf("stamped %v, apart %v", picture.Stamped(s.file(c.url)), other.stamped)
			}
		})
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
