package jpegplane

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gen2brain/jpegn"
)

// noisy is a picture whose blocks have coefficients everywhere.
func noisy(w, h int) *image.RGBA {
	r := rand.New(rand.NewPCG(uint64(w), uint64(h)))
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			i := img.PixOffset(x, y)
			base := 128 + 100*math.Sin(float64(x)/11)*math.Cos(float64(y)/17)
			for c := range 3 {
				img.Pix[i+c] = byte(min(max(base+float64(c*20)+float64(r.IntN(61)-30), 0), 255))
			}
			img.Pix[i+3] = 255
		}
	}
	return img
}

func encode(t testing.TB, img image.Image, o jpegn.EncodeOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpegn.Encode(&b, img, &o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The planes are those of a full decoder at the same scale, up to rounding.
func TestDecodeAgreesWithAFullDecoder(t *testing.T) {
	for _, size := range [][2]int{{64, 64}, {131, 77}, {17, 9}, {1, 1}, {400, 303}, {901, 640}} {
		for _, sub := range []jpegn.Subsampling{jpegn.Subsample420, jpegn.Subsample422, jpegn.Subsample440,
			jpegn.Subsample444, jpegn.SubsampleGray} {
			for _, o := range []jpegn.EncodeOptions{{Quality: 50}, {Quality: 98, OptimizeCoding: true},
				{Quality: 85, RestartInterval: 3},
				{Quality: 90, Progressive: true}, {Quality: 70, Progressive: true, RestartInterval: 2}} {
				o.Subsampling = sub
				data := encode(t, noisy(size[0], size[1]), o)
				for _, denominator := range denominators(o) {
					t.Run(fmt.Sprintf("%v/%d/%d/%v/%d", size, sub, o.Quality, o.Progressive, denominator),
						func(t *testing.T) { compare(t, data, denominator) })
				}
			}
		}
	}
}

// denominators that are decoded here: full size only of sequential pictures, by
// vectors.
func denominators(o jpegn.EncodeOptions) []int {
	if o.Progressive {
		return []int{2, 4, 8}
	}
	return []int{1, 2, 4, 8}
}

func compare(t *testing.T, data []byte, denominator int) {
	t.Helper()
	got, err := Decode(data, 8/denominator)
	if err != nil {
		t.Fatal(err)
	}
	img, err := jpegn.Decode(bytes.NewReader(data), &jpegn.Options{ScaleDenom: denominator})
	if err != nil {
		t.Fatal(err)
	}
	check := func(p Plane, pix []byte, stride, width, height int) {
		if p.Width != width || p.Height != height {
			t.Fatalf("a plane of %d×%d, want %d×%d", p.Width, p.Height, width, height)
		}
		for y := range height {
			for x := range width {
				a, b := int(p.Pix[y*p.Stride+x]), int(pix[y*stride+x])
				if d := a - b; d < -2 || d > 2 {
					t.Fatalf("at %d,%d: %d, the full decoder says %d", x, y, a, b)
				}
			}
		}
	}
	switch img := img.(type) {
	case *image.Gray:
		check(got.Planes[0], img.Pix, img.Stride, img.Rect.Dx(), img.Rect.Dy())
	case *image.YCbCr:
		w, h := img.Rect.Dx(), img.Rect.Dy()
		check(got.Planes[0], img.Y, img.YStride, w, h)
		a, d := got.Planes[1].Across, got.Planes[1].Down
		check(got.Planes[1], img.Cb, img.CStride, ceil(w, a), ceil(h, d))
		check(got.Planes[2], img.Cr, img.CStride, ceil(w, a), ceil(h, d))
	default:
		t.Fatalf("%T", img)
	}
}

func TestWhatIsNotPlainIsRefused(t *testing.T) {
	plain := encode(t, noisy(64, 64), jpegn.EncodeOptions{Quality: 80})
	progressive := encode(t, noisy(64, 64), jpegn.EncodeOptions{Progressive: true})
	for name, data := range map[string][]byte{
		"empty": nil, "progressive cut": progressive[:len(progressive)-100],
		"cut": plain[:len(plain)-200], "cut a little": plain[:len(plain)-12], "header only": plain[:200],
	} {
		if _, err := Decode(data, 4); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Decode(plain, 3); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a third: %v", err)
	}
}

// Nothing that is written in a file makes the decoder panic, and what it gives
// is complete.
func FuzzDecode(f *testing.F) {
	for _, o := range []jpegn.EncodeOptions{
		{Quality: 60}, {Quality: 95, OptimizeCoding: true, Subsampling: jpegn.Subsample422},
		{RestartInterval: 2, Subsampling: jpegn.SubsampleGray}, {Progressive: true}} {
		f.Add(encode(f, noisy(40, 33), o))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if cfg, err := jpegn.DecodeConfig(bytes.NewReader(data)); err == nil && cfg.Width*cfg.Height > 1<<20 {
			return // the caller's limits see to these
		}
		for _, eighths := range []int{1, 2, 4, 6, 8} {
			p, err := Decode(data, eighths)
			if err != nil {
				continue
			}
			for _, plane := range p.Planes {
				if len(plane.Pix) < (plane.Height-1)*plane.Stride+plane.Width || plane.Width < 1 || plane.Height < 1 {
					t.Fatalf("a plane of %d×%d has %d bytes", plane.Width, plane.Height, len(plane.Pix))
				}
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	data := encode(b, noisy(2000, 1500), jpegn.EncodeOptions{Quality: 85})
	for _, denominator := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprint(denominator), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := Decode(data, 8/denominator); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%d-jpegn", denominator), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := jpegn.Decode(bytes.NewReader(data), &jpegn.Options{ScaleDenom: denominator}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
