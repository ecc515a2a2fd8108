package pngrows

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/disintegration/imaging"
)

func samples() map[string]image.Image {
	r := rand.New(rand.NewPCG(1, 2))
	bounds := image.Rect(0, 0, 37, 29)
	palette := make(color.Palette, 13)
	for i := range palette {
		palette[i] = color.NRGBA{byte(i * 19), byte(255 - i*7), byte(i * i), byte(255 - i*15)}
	}
	two := color.Palette{color.NRGBA{255, 0, 0, 255}, color.NRGBA{0, 0, 255, 255}}
	all := map[string]draw.Image{
		"nrgba": image.NewNRGBA(bounds), "nrgba64": image.NewNRGBA64(bounds), "rgba64": image.NewRGBA64(bounds),
		"gray": image.NewGray(bounds), "gray16": image.NewGray16(bounds), "rgb": image.NewRGBA(bounds),
		"palette": image.NewPaletted(bounds, palette), "palette1": image.NewPaletted(bounds, two),
	}
	out := map[string]image.Image{}
	for name, img := range all {
		for y := range bounds.Dy() {
			for x := range bounds.Dx() {
				a := byte(255)
				if name == "nrgba" || name == "nrgba64" {
					a = byte(r.IntN(256))
				}
				img.Set(x, y, color.NRGBA{byte(x*7 + r.IntN(9)), byte(y * 8), byte(x * y), a})
			}
		}
		out[name] = img
	}
	return out
}

func encoded(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// At scale one the pixels are those of the standard decoder; at others the
// average that imaging's box filter gives.
func TestReduceAgreesWithTheStandardDecoder(t *testing.T) {
	for name, img := range samples() {
		for _, k := range []int{1, 2, 3, 5, 40} {
			got, err := Reduce(encoded(t, img), k)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			back, err := png.Decode(bytes.NewReader(encoded(t, img)))
			if err != nil {
				t.Fatal(err)
			}
			check(t, name, imaging.Clone(back), got, k)
		}
	}
}

func check(t *testing.T, name string, want *image.NRGBA, got *Reduced, k int) {
	t.Helper()
	for y := range got.Height {
		for x := range got.Width {
			var sum [4]float64
			n := 0.0
			for sy := y * k; sy < min((y+1)*k, want.Rect.Dy()); sy++ {
				for sx := x * k; sx < min((x+1)*k, want.Rect.Dx()); sx++ {
					px := want.Pix[sy*want.Stride+4*sx:][:4]
					for c := range 3 {
						sum[c] += float64(px[c]) * float64(px[3]) / 255
					}
					sum[3] += float64(px[3])
					n++
				}
			}
			for c, plane := range got.Planes {
				if d := float64(plane[y*got.Width+x]) - sum[c]/n; d > 1.1 || d < -1.1 {
					t.Fatalf("%s by %d at %d,%d channel %d: %d, want %.1f", name, k, x, y, c, plane[y*got.Width+x],
						sum[c]/n)
				}
			}
		}
	}
}

// Means are those of a division, at the edges too where a reciprocal would err.
func TestMeansAreExact(t *testing.T) {
	for k := 1; k <= largest; k++ {
		for deep := 1; deep <= k; deep++ {
			count := uint32(k * deep)
			for q := range uint32(255) {
				edge := (q+1)*count - count/2
				for _, sum := range []uint32{edge - 1, edge, 255 * count} {
					if got, want := by(k*deep).mean(sum), byte((sum+count/2)/count); got != want {
						t.Fatalf("%d of %d: %d, want %d", sum, count, got, want)
					}
				}
			}
		}
	}
}

func TestEncodeIsReadBack(t *testing.T) {
	for name, img := range samples() {
		want := imaging.Clone(img)
		for _, best := range []bool{false, true} {
			var b bytes.Buffer
			if err := Encode(&b, want, best); err != nil {
				t.Fatal(err)
			}
			got, err := png.Decode(&b)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if !bytes.Equal(imaging.Clone(got).Pix, want.Pix) {
				t.Errorf("%s is not read back as it was", name)
			}
		}
	}
}

func TestDamageIsAnError(t *testing.T) {
	data := encoded(t, samples()["nrgba"])
	for _, n := range []int{0, 8, 30, 50, len(data) / 2, len(data) - 30} {
		if _, err := Reduce(data[:n], 2); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%d bytes of %d: %v", n, len(data), err)
		}
	}
}

// What is in the chunks must be zlib, also where their checksums are right.
func TestPixelsThatAreNoZlibStream(t *testing.T) {
	data := encoded(t, samples()["nrgba"])
	at := bytes.Index(data, []byte("IDAT"))
	n := int(binary.BigEndian.Uint32(data[at-4:]))
	for _, head := range [][]byte{{0x79, 0x9c}, {0x78, 0x9d}, {0x78, 0xbb}} { // method, check, dictionary
		copy(data[at+4:], head)
		binary.BigEndian.PutUint32(data[at+4+n:], crc32.ChecksumIEEE(data[at:at+4+n]))
		if _, err := Reduce(data, 2); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "zlib") {
			t.Errorf("%x: %v", head, err)
		}
	}
}

func FuzzReduce(f *testing.F) {
	for _, img := range samples() {
		f.Add(encoded(f, img), uint8(2))
	}
	f.Fuzz(func(t *testing.T, data []byte, k uint8) {
		// Checksums are what fuzzing cannot guess: they are made good.
		if cfg, err := png.DecodeConfig(bytes.NewReader(data)); err == nil && cfg.Width*cfg.Height > 1<<20 {
			return
		}
		r, err := Reduce(data, int(k))
		if err == nil && (r.Width < 1 || len(r.Planes[0]) != r.Width*r.Height) {
			t.Fatalf("%d×%d with %d bytes", r.Width, r.Height, len(r.Planes[0]))
		}
	})
}

// unfilterPlain is unfilter as the specification has it (PNG, 9.2), byte by byte.
func unfilterPlain(kind byte, row, above []byte, stride int) {
	for i := range row {
		var a, b, c int32
		if b = int32(above[i]); i >= stride {
			a, c = int32(row[i-stride]), int32(above[i-stride])
		}
		switch kind {
		case 1:
			row[i] += byte(a)
		case 2:
			row[i] += byte(b)
		case 3:
			row[i] += byte((a + b) / 2)
		case 4:
			row[i] += byte(nearest(a, b, c))
		}
	}
}

func FuzzUnfilter(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for kind := range uint8(5) {
		for stride := range uint8(8) {
			data := make([]byte, 2*24*(int(stride)+1)+int(kind))
			for i := range data {
				data[i] = byte(r.IntN(256))
			}
			f.Add(kind, data, stride)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte, stride uint8) {
		n := int(stride)%8 + 1
		half := len(data) / 2 / n * n
		row, above := make([]byte, half), data[half:2*half]
		if !unfilter(kind%5, row, data[:half], above, n) {
			t.Fatal("a known filter is refused")
		}
		want := bytes.Clone(data[:half])
		unfilterPlain(kind%5, want, above, n)
		if !bytes.Equal(row, want) {
			t.Fatalf("filter %d, stride %d: %v, want %v", kind%5, n, row, want)
		}
	})
}
