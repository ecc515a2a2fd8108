package picture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/disintegration/imaging"
	"github.com/gen2brain/jpegn"
)

func animatedWebP(t testing.TB, n int) []byte {
	t.Helper()
	var stills [][]byte
	var millis []int
	for i := range n {
		stills = append(stills, encodeWebP(t, turned(photo(120, 120), i%4+1), i%2 == 0))
		millis = append(millis, 40)
	}
	data, err := joinWebP(stills, millis, 3, 120, 120)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Unusual but right pictures are rendered.
func TestUnusualPicturesAreRendered(t *testing.T) {
	plain := encodeJPEG(t, photo(400, 300), &jpegn.EncodeOptions{Quality: 90})
	deep := image.NewNRGBA64(image.Rect(0, 0, 300, 200))
	draw.Draw(deep, deep.Rect, photo(300, 200), image.Point{}, draw.Src)
	palette := image.NewPaletted(image.Rect(0, 0, 300, 200), color.Palette{
		color.NRGBA{}, color.NRGBA{200, 30, 30, 255}})
	for name, c := range map[string]struct {
		data    []byte
		format  Format
		partial bool
		frames  int
	}{
		"truncated jpeg": {plain[:len(plain)*2/3], JPEG, true, 1},
		"jpeg with zip behind": {append(bytes.Clone(plain), "PK\x03\x04 a polyglot <?php phpinfo(); ?>"...), JPEG,
			false, 1},
		"16-bit png":     {encodePNG(t, deep), PNG, false, 1},
		"paletted png":   {encodePNG(t, palette), PNG, false, 1},
		"interlaced png": {interlaced(t), PNG, false, 1},
		"apng":           {animatedPNG(t), PNG, false, 1},
		"png with html behind": {append(encodePNG(t, palette), "<script>alert(1)</script><?php phpinfo();"...), PNG,
			false, 1},
		"gif that is a script": {scriptGIF(t), GIF, false, 2},
		"jpeg with a comment": {
			encodeJPEG(t, photo(90, 60), &jpegn.EncodeOptions{
				Segments: []jpegn.Segment{{Marker: 0xfe, Data: []byte("<?php phpinfo(); ?>")}}}), JPEG, false, 1},
		"animated webp": {animatedWebP(t, 3), WebP, false, 3},
		"animated gif":  {manyFrames(t, 4, 50), GIF, false, 4},
		"still gif":     {manyFrames(t, 1, 50), GIF, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			result := render(t, maker(), c.data, Spec{Width: 40, Height: 30})
			r := result.Renditions[0]
			if r.Format != c.format || result.Header.Partial != c.partial || r.Frames != c.frames {
				t.Errorf("%s, partial %v, %d frames", r.Format, result.Header.Partial, r.Frames)
			}
			if size := decoded(t, r.Data).Rect.Size(); size != image.Pt(40, 30) {
				t.Errorf("%v", size)
			}
			if bytes.Contains(r.Data, []byte("php")) {
				t.Error("what was behind the picture came through")
			}
		})
	}
}

// interlaced is Adam7 of 90×60, made by ImageMagick of the picture that slopes
// gives.
func interlaced(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/interlaced.png")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func slopes(w, h int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.SetNRGBA(x, y, color.NRGBA{byte(x * 255 / w), byte(y * 255 / h), byte((x + y) * 255 / (w + h)), 255})
		}
	}
	return img
}

func TestAnInterlacedPNGIsAsAPlainOne(t *testing.T) {
	spec := Spec{Width: 45, Height: 30}
	got := decoded(t, render(t, maker(), interlaced(t), spec).Renditions[0].Data)
	want := decoded(t, render(t, maker(), encodePNG(t, slopes(90, 60)), spec).Renditions[0].Data)
	if db := psnr(t, got, want); db < 40 {
		t.Errorf("%.1f dB", db)
	}
}

// animatedPNG is a PNG with the chunks of an animation (acTL, fcTL, fdAT).
func animatedPNG(t testing.TB) []byte {
	t.Helper()
	data := encodePNG(t, photo(90, 60))
	add := func(kind string, body []byte) []byte {
		c := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), kind...)
		c = append(c, body...)
		return binary.BigEndian.AppendUint32(c, crc32.ChecksumIEEE(c[4:]))
	}
	control := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 0), 90)
	control = append(binary.BigEndian.AppendUint32(control, 60), 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 10, 0, 0)
	out := append(bytes.Clone(data[:33]), add("acTL", []byte{0, 0, 0, 2, 0, 0, 0, 0})...)
	out = append(append(out, add("fcTL", control)...), data[33:len(data)-12]...)
	return append(append(out, add("fdAT", []byte{0, 0, 0, 1, 1, 2, 3})...), data[len(data)-12:]...)
}

// scriptGIF is an animation whose comment is a program.
func scriptGIF(t testing.TB) []byte {
	t.Helper()
	data := manyFrames(t, 2, 60)
	comment := "*/=1;alert(1);/*<?php phpinfo();"
	at := 13 + colourTable(data[10])
	extension := append([]byte{0x21, 0xfe, byte(len(comment))}, comment...)
	return bytes.Join([][]byte{data[:at], extension, {0}, data[at:]}, nil)
}

// moduleFile reads a file that a module or Go itself ships.
func moduleFile(t testing.TB, module, name string) []byte {
	t.Helper()
	folder := filepath.Join(runtime.GOROOT(), "src", "image", "testdata")
	if module != "" {
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		if err != nil {
			t.Skip("the module's folder is not known: ", err)
		}
		folder = filepath.Join(strings.TrimSpace(string(out)), "testdata")
	}
	data, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Skip("this version does not ship the picture: ", err)
	}
	return data
}

// The rarer kinds of JPEG look as other programs show them: as their lossless
// counterpart, or else as the standard library decodes them.
func TestRareJPEGsLookAsTheyShould(t *testing.T) {
	const gen = "github.com/gen2brain/jpegn"
	for name, c := range map[string]struct {
		module, file, duplicate string
		least                   float64
	}{
		"CMYK":               {"", "video-001.cmyk.jpeg", "video-001.cmyk.png", 28},
		"CMYK, subsampled":   {gen, "test.cmyk.jpg", "", 40},
		"YCCK":               {gen, "test.ycck.jpg", "", 40},
		"RGB":                {"", "video-001.rgb.jpeg", "", 30},
		"4:1:1":              {"", "video-001.q50.411.jpeg", "", 30},
		"4:1:1, progressive": {"", "video-001.q50.411.progressive.jpeg", "", 30},
		"4:1:0":              {"", "video-001.q50.410.jpeg", "", 30},
		"4:4:0":              {"", "video-001.q50.440.jpeg", "", 30},
		"2×2 grey":           {"", "video-005.gray.q50.2x2.jpeg", "", 30},
		"restarts":           {"", "video-001.restart2.jpeg", "", 30},
		"progressive":        {"", "video-001.progressive.jpeg", "", 30},
		"DC by component":    {"", "video-001.separate.dc.progression.jpeg", "", 30},
		"16-bit tables":      {gen, "test.420.dqt16.jpg", "", 30},
		"separate scans":     {gen, "test.420.noninterleaved.jpg", "", 30},
	} {
		t.Run(name, func(t *testing.T) {
			data := moduleFile(t, c.module, c.file)
			other := data
			if c.duplicate != "" {
				other = moduleFile(t, c.module, c.duplicate)
			}
			img, _, err := image.Decode(bytes.NewReader(other))
			if err != nil {
				t.Fatal(err)
			}
			want := imaging.Resize(img, img.Bounds().Dx()/2, 0, imaging.Lanczos)
			got := render(t, maker(), data, Spec{Width: want.Rect.Dx(), Formats: []Format{PNG}})
			if db := psnr(t, decoded(t, got.Renditions[0].Data), want); db < c.least {
				t.Errorf("%.1f dB, want %.0f", db, c.least)
			} else {
				t.Logf("%.1f dB", db)
			}
		})
	}
}

// What is not read is refused with the reason, from the header.
func TestUnreadKindsAreNamed(t *testing.T) {
	frame := func(change func(segment []byte)) []byte {
		data := encodeJPEG(t, photo(64, 64), nil)
		change(data[bytes.Index(data, []byte{0xff, 0xc0}):])
		return data
	}
	for says, data := range map[string][]byte{
		"12 bits": frame(func(s []byte) { s[4] = 12 }),
		"SOF9":    frame(func(s []byte) { s[1] = 0xc9 }), // arithmetic coding
		"SOF10":   frame(func(s []byte) { s[1] = 0xca }), // the same, progressive
		"SOF3":    frame(func(s []byte) { s[1] = 0xc3 }), // lossless
	} {
		_, err := maker().Render(t.Context(), data, []Spec{{Width: 10, Height: 10}})
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// A file that ends early is rendered as far as it goes, or refused as damaged.
func TestTruncatedFiles(t *testing.T) {
	for name, data := range map[string][]byte{
		"jpeg": encodeJPEG(t, photo(400, 300), nil), "progressive": encodeJPEG(t, photo(400, 300),
			&jpegn.EncodeOptions{Progressive: true}),
		"png": encodePNG(t, photo(200, 150)), "interlaced": interlaced(t), "gif": manyFrames(t, 4, 50),
		"webp": encodeWebP(t, photo(200, 150), false), "lossless": encodeWebP(t, photo(200, 150), true),
		"animated": animatedWebP(t, 3),
	} {
		for _, part := range []int{1, 10, 50, 90, 99} {
			r, err := maker().Render(context.Background(), data[:len(data)*part/100], []Spec{{Width: 40, Height: 30}})
			switch {
			case err == nil && r.Header.Partial:
			case errors.Is(err, ErrCorrupt), errors.Is(err, ErrUnsupported):
			default:
				t.Errorf("%s, %d %%: partial %v, %v", name, part, r.Header.Partial, err)
			}
		}
	}
}

// What becomes of an animation of more frames than are resized: an error that
// says so, a copy, or its first frame.
func TestAnimationsOfManyFrames(t *testing.T) {
	data := manyFrames(t, 2000, 40)
	specs := []Spec{{Width: 20, Height: 10}, {Width: 30, Mode: Fit, Formats: []Format{PNG}}}
	m := maker()
	m.Preview = true
	if _, err := m.Render(t.Context(), data, specs); !errors.Is(err, ErrTooLarge) ||
		!strings.Contains(err.Error(), "2000 frames") {
		t.Errorf("resized: %v", err)
	}
	m.Animations = Copy
	r := render(t, m, data, specs...)
	if !bytes.Equal(r.Renditions[0].Data, data) || r.Renditions[0].Frames != 2000 || r.Renditions[1].Format != PNG ||
		r.Renditions[1].Width != 30 || r.Preview == nil {
		t.Errorf("copied: %d bytes, %d frames, then %s", len(r.Renditions[0].Data), r.Renditions[0].Frames,
			r.Renditions[1].Format)
	}
	m.Animations = Still
	for name, data := range map[string][]byte{"gif": data, "webp": animatedWebP(t, 3)} {
		r := render(t, m, data, specs...)
		if got, err := Inspect(r.Renditions[0].Data); err != nil || got.Frames != 1 || r.Renditions[0].Width != 20 ||
			r.Preview == nil {
			t.Errorf("still %s: %d frames, %v", name, got.Frames, err)
		}
	}
}

// A placeholder of an animation is of its first frame. (It panicked once.)
func TestThePreviewOfAnAnimation(t *testing.T) {
	m := maker()
	m.Preview = true
	for name, data := range map[string][]byte{"gif": manyFrames(t, 3, 50), "webp": animatedWebP(t, 3)} {
		r := render(t, m, data, Spec{Width: 20, Height: 20})
		if len(r.Renditions) != 1 || r.Renditions[0].Frames != 3 || r.Preview == nil {
			t.Errorf("%s: %d renditions, preview %v", name, len(r.Renditions), r.Preview)
		}
	}
}
