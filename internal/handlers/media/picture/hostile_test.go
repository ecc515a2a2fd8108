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
	"image/gif"
	"runtime"
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
		"webp 16,383²": riff(chunk(chunk(nil, "VP8X", extendedHeader(0, 16384, 16384)), "VP8L",
			[]byte{0x2f, 0xff, 0xff, 0xff, 0x0f, 0})),
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
