package isolate

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gen2brain/avif"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
)

// TestMain makes this program its own child: with a first argument it serves, by
// a decoder that the argument names.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || strings.HasPrefix(os.Args[1], "-") {
		os.Exit(m.Run())
	}
	render := map[string]func(picture.Generator, context.Context, []byte, []picture.Spec) (picture.Result, error){
		"good":   picture.Generator.Render,
		"hungry": hungry,
		"endless": func(picture.Generator, context.Context, []byte, []picture.Spec) (picture.Result, error) {
			for { //nolint:retry // what runs away
			}
		},
		"crash": func(picture.Generator, context.Context, []byte, []picture.Spec) (picture.Result, error) {
			go func() { panic("in a goroutine that nobody watches") }()
			select {}
		},
	}[os.Args[1]]
	if err := Serve(os.Stdin, os.Stdout, render); err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	os.Exit(0)
}

// hungry takes and uses memory without end.
func hungry(picture.Generator, context.Context, []byte, []picture.Spec) (picture.Result, error) {
	var all [][]byte
	for {
		all = append(all, bytes.Repeat([]byte{1}, 16<<20))
		if len(all) > 1<<10 {
			return picture.Result{}, errors.New("16 GiB were given")
		}
	}
}

func renderer(t *testing.T, way string) Renderer {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Renderer{Command: []string{self, way}, Memory: 256 << 20, Time: 2 * time.Minute}
}

func animation(t *testing.T) []byte {
	t.Helper()
	var g gif.GIF
	for i := range 3 {
		frame := image.NewPaletted(image.Rect(0, 0, 90, 60), color.Palette{
			color.Black, color.White, color.NRGBA{200, 0, 0, 255}})
		for j := range frame.Pix {
			frame.Pix[j] = byte((i + j/7) % 3)
		}
		g.Image, g.Delay = append(g.Image, frame), append(g.Delay, 5)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, &g); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func maker() picture.Generator {
	return picture.Generator{Limits: picture.DefaultLimits(), Preview: true}
}

// The other process gives what this one gives, errors and their kinds too.
func TestAnotherProcessAnswersAsThisOne(t *testing.T) {
	data := animation(t)
	specs := []picture.Spec{{Width: 30, Height: 30}, {Width: 45, Mode: picture.Fit, Formats: []picture.Format{
		picture.PNG, picture.GIF}}}
	want, err := maker().Render(t.Context(), data, specs)
	if err != nil {
		t.Fatal(err)
	}
	got, err := renderer(t, "good").Render(t.Context(), maker(), data, specs)
	if err != nil {
		t.Fatal(err)
	}
	if got.Header.Frames != 3 || len(got.Renditions) != 3 || got.Preview == nil ||
		got.Preview.Bounds() != want.Preview.Bounds() {
		t.Fatalf("%d frames, %d renditions, preview %v", got.Header.Frames, len(got.Renditions), got.Preview != nil)
	}
	for i, r := range got.Renditions {
		if w := want.Renditions[i]; r.Spec != w.Spec || r.Format != w.Format || r.Frames != w.Frames ||
			!bytes.Equal(r.Data, w.Data) {
			t.Errorf("rendition %d: %s of %d bytes, want %s of %d", i, r.Format, len(r.Data), w.Format, len(w.Data))
		}
	}
	_, want2 := maker().Render(t.Context(), data[:60], specs)
	_, got2 := renderer(t, "good").Render(t.Context(), maker(), data[:60], specs)
	if want2 == nil || got2 == nil || want2.Error() != got2.Error() || !errors.Is(got2, picture.ErrCorrupt) {
		t.Errorf("damaged: %v, want %v", got2, want2)
	}
}

// So it is with stamps.
func TestAnotherProcessStampsAsThisOne(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 60, 40))); err != nil {
		t.Fatal(err)
	}
	mark := picture.Watermark{Mark: b.Bytes(), Percent: 20, Opacity: 70, Position: "bottom-right", X: 3, Y: 3}
	want, err := maker().Stamp(b.Bytes(), mark)
	if err != nil {
		t.Fatal(err)
	}
	got, err := renderer(t, "good").Stamp(t.Context(), maker(), b.Bytes(), mark)
	if err != nil || !picture.Stamped(got) || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want %d; %v", len(got), len(want), err)
	}
	if _, err := renderer(t, "good").Stamp(t.Context(), maker(), b.Bytes()[:60], mark); !errors.Is(err,
		picture.ErrCorrupt) {
		t.Errorf("damaged: %v", err)
	}
}

// A decoder without end, or one that takes all memory, or one that panics where
// nobody can recover, costs its picture, and this process goes on. (In this
// process each of the three would end the test.)
func TestADecoderThatRunsAwayCostsOnlyItsPicture(t *testing.T) {
	for way, c := range map[string]struct {
		kind error
		says string
	}{
		"hungry": {picture.ErrTooLarge, "256 MiB"}, "endless": {picture.ErrTooLarge, "1s"},
		"crash": {picture.ErrCorrupt, "nobody watches"},
	} {
		t.Run(way, func(t *testing.T) {
			if way == "hungry" && (runtime.GOOS != "linux" || watched) {
				t.Skip("memory is only limited on Linux, without the race detector")
			}
			r := renderer(t, way)
			if way == "endless" {
				r.Time = time.Second
			}
			_, err := r.Render(t.Context(), maker(), animation(t), []picture.Spec{{Width: 30, Height: 30}})
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %v and %q", err, c.kind, c.says)
			}
		})
	}
}

// A job that is cancelled takes its process with it, and says why.
func TestACancelledPictureEndsItsProcess(t *testing.T) {
	because := errors.New("the worker stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	timer := time.AfterFunc(50*time.Millisecond, func() { cancel(because) })
	defer timer.Stop()
	if _, err := renderer(t, "endless").Render(ctx, maker(), animation(t), []picture.Spec{
		{Width: 30, Height: 30}}); !errors.Is(err, because) {
		t.Errorf("%v", err)
	}
	r := renderer(t, "good")
	r.Command[0] = "/nothing/here"
	if _, err := r.Render(t.Context(), maker(), animation(t), nil); err == nil || errors.Is(err, picture.ErrCorrupt) {
		t.Errorf("a program that is not there: %v", err)
	}
}

// A library that runs as WebAssembly decodes within the other process's memory, too. It
// needs more than others. Under the race detector, which has no limit and starts such a
// library slowly, a small picture is decoded.
func TestAnAVIFIsDecodedElsewhere(t *testing.T) {
	data, err := os.ReadFile("testdata/small.avif")
	if err != nil {
		t.Fatal(err)
	}
	if !watched {
		img := image.NewNRGBA(image.Rect(0, 0, 3200, 2400))
		for i := range img.Pix {
			img.Pix[i] = byte(i%4/3*255 | i>>9)
		}
		var b bytes.Buffer
		if err := avif.Encode(&b, img, avif.Options{Quality: 60, Speed: 10}); err != nil {
			t.Fatal(err)
		}
		data = b.Bytes()
	}
	r := renderer(t, "good")
	r.Memory = 768 << 20 // the service's default
	specs := []picture.Spec{{Width: 30, Height: 30, Formats: []picture.Format{picture.PNG}}}
	m := picture.Generator{Limits: picture.DefaultLimits()}
	got, err := r.Render(t.Context(), m, data, specs)
	if err != nil || len(got.Renditions) != 1 || got.Header.Format != picture.AVIF {
		t.Errorf("%d renditions of %q: %v", len(got.Renditions), got.Header.Format, err)
	}
	if watched {
		return
	}
	r.Memory = 300 << 20
	if _, err := r.Render(t.Context(), m, data, specs); !errors.Is(err, picture.ErrTooLarge) ||
		!strings.Contains(err.Error(), "media.isolate_memory") {
		t.Errorf("with too little memory: %v", err)
	}
}
