package cli

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"reflect"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/isolate"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
)

// Each word of the configuration's media section reaches the handler.
func TestTheMediaSectionReachesTheHandler(t *testing.T) {
	c := config.Default()
	c.Media = config.Media{
		Sizes: []string{"card:400x300", "wide:1200x0:fit"}, Widths: []int{640}, Name: "{name}_{size}.{ext}",
		Quality: 82, Copies: []string{"webp"},
		Optimize: true, KeepEXIF: true, KeepICC: true, Placeholder: true, Position: "top", Animations: "copy",
		Watermark: config.Watermark{Enabled: true, Source: "m.png", Percent: 20, Opacity: 40, Position: "left", X: 3,
			Y: 4, Folders: []string{"7"}},
		Memory: 100 << 20, AtOnce: 3, MaxFile: 5 << 20, Isolate: true, IsolateMemory: 200 << 20,
		IsolateTime: 9 * time.Second,
	}
	r := &app.Services{Self: "/usr/bin/cmsjobs", Config: &config.Loaded{Config: c}}
	got, err := r.MediaOptions()
	if err != nil {
		t.Fatal(err)
	}
	limits := picture.DefaultLimits()
	limits.FileBytes = 5 << 20
	want := media.Options{
		Sizes:  []media.Size{{Name: "card", Width: 400, Height: 300}, {Name: "wide", Width: 1200, Fit: true}},
		Widths: []int{640}, Name: "{name}_{size}.{ext}", Position: "top", Quality: 82, Copies: []string{"webp"},
		Optimize: true, KeepEXIF: true, KeepICC: true, Placeholder: true, Animations: picture.Copy,
		Watermark: &media.Watermark{Source: "m.png", Percent: 20, Opacity: 40, Position: "left", X: 3, Y: 4,
			Folders: []string{"7"}},
		Limits: limits, Memory: 100 << 20, AtOnce: 3,
		Apart: isolate.Renderer{Command: []string{"/usr/bin/cmsjobs", "media", "render"}, Memory: 200 << 20,
			Time: 9 * time.Second},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	r.Config.Media.Isolate, r.Config.Media.Watermark.Enabled = false, false
	if got, err := r.MediaOptions(); err != nil || got.Apart != nil || got.Watermark != nil {
		t.Errorf("off: %+v, %v", got, err)
	}
}

// The program itself is the other end of media.isolate.
func TestTheProgramRendersOnePicture(t *testing.T) {
	t.Parallel()
	var animation bytes.Buffer
	frame := image.NewPaletted(image.Rect(0, 0, 80, 60), color.Palette{color.Black, color.White})
	if err := gif.EncodeAll(&animation, &gif.GIF{Image: []*image.Paletted{frame, frame}, Delay: []int{
		3, 3}}); err != nil {
		t.Fatal(err)
	}
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	far := isolate.Renderer{Command: []string{program, "media", "render"}, Memory: 256 << 20, Time: time.Minute}
	result, err := far.Render(context.Background(), picture.Generator{Limits: picture.DefaultLimits()},
		animation.Bytes(), []picture.Spec{{Width: 40, Height: 30}})
	if err != nil || len(result.Renditions) != 1 || result.Renditions[0].Frames != 2 {
		t.Errorf("%d renditions, %v", len(result.Renditions), err)
	}
	var mark bytes.Buffer
	if err := png.Encode(&mark, image.NewGray(image.Rect(0, 0, 60, 40))); err != nil {
		t.Fatal(err)
	}
	stamped, err := far.Stamp(context.Background(), picture.Generator{Limits: picture.DefaultLimits()}, mark.Bytes(),
		picture.Watermark{Mark: mark.Bytes(), Percent: 20, Opacity: 70})
	if err != nil || !picture.Stamped(stamped) {
		t.Errorf("%d bytes stamped, %v", len(stamped), err)
	}
}
