package picture

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gen2brain/jpegn"
)

// rawPNG is a PNG with a header of our choice around data that inflates to n
// zeros.
func rawPNG(width, height int, depth, colour byte, n int) []byte {
	out := []byte("\x89PNG\r\n\x1a\n")
	add := func(kind string, body []byte) {
		out = binary.BigEndian.AppendUint32(out, uint32(len(body)))
		at := len(out)
		out = append(append(out, kind...), body...)
		out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[at:]))
	}
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(width)), uint32(height))
	add("IHDR", append(head, depth, colour, 0, 0, 0))
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	zeros := make([]byte, 1<<16)
	for n > 0 {
		k, _ := w.Write(zeros[:min(n, len(zeros))])
		n -= k
	}
	w.Close()
	add("IDAT", z.Bytes())
	add("IEND", nil)
	return out
}

// jpegClaiming is a valid small JPEG whose header claims another size.
func jpegClaiming(t testing.TB, width, height int, o *jpegn.EncodeOptions) []byte {
	data := encodeJPEG(t, photo(64, 64), o)
	for i := range data {
		if data[i] == 0xff && (data[i+1] == 0xc0 || data[i+1] == 0xc2) {
			binary.BigEndian.PutUint16(data[i+5:], uint16(height))
			binary.BigEndian.PutUint16(data[i+7:], uint16(width))
			return data
		}
	}
	panic("no frame")
}

func manyFrames(t testing.TB, n, side int) []byte {
	t.Helper()
	// One frame is encoded, its blocks are repeated.
	frame := image.NewPaletted(image.Rect(0, 0, side, side), color.Palette{color.Black, color.White})
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, &gif.GIF{Image: []*image.Paletted{frame}, Delay: []int{1}}); err != nil {
		t.Fatal(err)
	}
	data := b.Bytes()
	start := 13 + colourTable(data[10])
	blocks := data[start : len(data)-1]
	return append(append(bytes.Clone(data[:start]), bytes.Repeat(blocks, n)...), ';')
}

// Pictures that claim more than they may are refused before they cost memory.
func TestTooLargeIsRefusedBeforeDecoding(t *testing.T) {
	scans := encodeJPEG(t, photo(640, 640), &jpegn.EncodeOptions{Progressive: true})
	end := len(scans) - 2
	last := bytes.LastIndex(scans, []byte{0xff, 0xda})
	scans = append(append(bytes.Clone(scans[:end]), bytes.Repeat(scans[last:end], 6000)...), 0xff, 0xd9)
	for name, data := range map[string][]byte{
		"png 50,000²":            rawPNG(50000, 50000, 8, 6, 100),
		"png 60,000² of one bit": rawPNG(60000, 60000, 1, 0, 100),
		"jpeg 65,535²":           jpegClaiming(t, 65535, 65535, nil),
		"progressive 65,000²":    jpegClaiming(t, 65000, 65000, &jpegn.EncodeOptions{Progressive: true}),
		"jpeg of 6,000 scans":    scans,
		"gif of 2,000 frames":    manyFrames(t, 2000, 8),
		"gif of 300 large":       manyFrames(t, 300, 1000),
		"webp 16,383²":           riff(chunk(chunk(nil, "VP8X", extendedHeader(0, 16384, 16384)), "VP8L", []byte{0x2f, 0xff, 0xff, 0xff, 0x0f, 0})),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := maker().Render(context.Background(), data, []Spec{{Width: 150, Height: 150}})
			runtime.ReadMemStats(&after)
			if !errors.Is(err, ErrTooLarge) {
				t.Errorf("%v", err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
				t.Errorf("refusing took %d bytes", used)
			}
		})
	}
}

// A large but allowed PNG costs rows, not megapixels.
func TestALargePNGIsStreamed(t *testing.T) {
	data := rawPNG(3000, 3000, 8, 2, 3000*(3*3000+1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := render(t, maker(), data, Spec{Width: 150, Height: 150}, Spec{Width: 800, Height: 800, Mode: Fit})
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 10<<20 || len(r.Renditions) != 2 {
		t.Errorf("9 megapixels took %d MiB, %d renditions", used>>20, len(r.Renditions))
	}
}

func interlacedPNG() []byte {
	// 2×2, red, Adam7: made by hand, as no Go encoder interlaces.
	data := rawPNG(2, 2, 8, 2, 0)
	data = data[:33]
	data[28] = 1
	binary.BigEndian.PutUint32(data[29:], crc32.ChecksumIEEE(data[12:29]))
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	w.Write([]byte{0, 255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 255, 0, 0})
	w.Close()
	body := append([]byte("IDAT"), z.Bytes()...)
	data = binary.BigEndian.AppendUint32(data, uint32(z.Len()))
	data = binary.BigEndian.AppendUint32(append(data, body...), crc32.ChecksumIEEE(body))
	return append(data, "\x00\x00\x00\x00IEND\xaeB`\x82"...)
}

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
	palette := image.NewPaletted(image.Rect(0, 0, 300, 200), color.Palette{color.NRGBA{}, color.NRGBA{200, 30, 30, 255}})
	for name, c := range map[string]struct {
		data    []byte
		format  Format
		partial bool
		frames  int
	}{
		"truncated jpeg":       {plain[:len(plain)*2/3], JPEG, true, 1},
		"jpeg with zip behind": {append(bytes.Clone(plain), "PK\x03\x04 a polyglot <?php phpinfo(); ?>"...), JPEG, false, 1},
		"16-bit png":           {encodePNG(t, deep), PNG, false, 1},
		"paletted png":         {encodePNG(t, palette), PNG, false, 1},
		"interlaced png":       {interlacedPNG(), PNG, false, 1},
		"animated webp":        {animatedWebP(t, 3), WebP, false, 3},
		"animated gif":         {manyFrames(t, 4, 50), GIF, false, 4},
		"still gif":            {manyFrames(t, 1, 50), GIF, false, 1},
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

// The corpora that packages ship, damaged files among them: each is rendered or
// refused with an error of ours.
func TestForeignCorpora(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gen2brain/jpegn", "golang.org/x/image", "github.com/gen2brain/webp").Output()
	if err != nil {
		t.Skip("the modules' folders are not known")
	}
	folders := append(strings.Fields(string(dir)), filepath.Join(runtime.GOROOT(), "src", "image"))
	rendered, refused := 0, 0
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.Contains(path, "testdata") {
				return err
			}
			if info, err := entry.Info(); err != nil || info.Size() > 300<<10 {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			r, err := maker().Render(t.Context(), data, []Spec{{Width: 150, Height: 150}, {Width: 320, Height: 320, Mode: Fit}})
			switch {
			case err == nil && len(r.Renditions) == 2:
				rendered++
			case errors.Is(err, ErrCorrupt), errors.Is(err, ErrUnsupported), errors.Is(err, ErrTooLarge):
				refused++
			default:
				t.Errorf("%s: %d renditions, %v", path, len(r.Renditions), err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if t.Logf("%d rendered, %d refused", rendered, refused); rendered < 60 {
		t.Error("too few were rendered")
	}
}

// FuzzRender feeds the engine with everything: no panic, no more renditions
// than asked for, each readable.
func FuzzRender(f *testing.F) {
	f.Add(encodeJPEG(f, photo(40, 30), nil))
	f.Add(encodeJPEG(f, photo(40, 30), &jpegn.EncodeOptions{Progressive: true}))
	f.Add(encodePNG(f, photo(20, 30)))
	f.Add(manyFrames(f, 3, 20))
	f.Add(encodeWebP(f, photo(20, 20), true))
	f.Add(animatedWebP(f, 2))
	m := maker()
	m.Limits.StreamedPixels, m.Limits.WholePixels, m.Limits.AnimatedPixels, m.Limits.ScannedPixels = 1e6, 1e6, 1e6, 1e7
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := m.Render(t.Context(), data, []Spec{{Width: 16, Height: 16, Formats: []Format{PNG}}})
		if err != nil {
			return
		}
		if img, err := png.Decode(bytes.NewReader(r.Renditions[0].Data)); err != nil || img.Bounds().Dx() != 16 {
			t.Fatalf("%v", err)
		}
	})
}
