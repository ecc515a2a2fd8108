package resample

import (
	"image"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/disintegration/imaging"
)

func TestAFlatPlaneStaysFlat(t *testing.T) {
	for _, value := range []byte{0, 1, 127, 254, 255} {
		src := NewPlane(97, 53)
		for i := range src.Pix {
			src.Pix[i] = value
		}
		for _, size := range [][2]int{{1, 1}, {3, 200}, {97, 53}, {50, 7}, {300, 100}} {
			dst := NewPlane(size[0], size[1])
			if err := resizeOne(dst, src, Box{0.3, 0.2, 96.1, 51.9}); err != nil {
				t.Fatal(err)
			}
			for i, v := range dst.Pix {
				if v != value {
					t.Fatalf("%v of %d: sample %d is %d", size, value, i, v)
				}
			}
		}
	}
}

// The same filter as disintegration/imaging, up to rounding.
func TestResizeAgreesWithImaging(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	src := NewPlane(301, 187)
	for y := range src.Height {
		for x := range src.Width {
			src.Pix[y*src.Stride+x] = byte(128 + 90*math.Sin(float64(x)/9)*math.Cos(float64(y)/7) + float64(r.IntN(20)))
		}
	}
	gray := &image.Gray{Pix: src.Pix, Stride: src.Stride, Rect: image.Rect(0, 0, src.Width, src.Height)}
	for _, size := range [][2]int{{150, 93}, {240, 150}, {37, 61}, {600, 400}, {301, 40}} {
		dst := NewPlane(size[0], size[1])
		if err := resizeOne(dst, src, src.Whole()); err != nil {
			t.Fatal(err)
		}
		want := imaging.Resize(gray, size[0], size[1], imaging.Lanczos)
		worst := 0
		for i, v := range dst.Pix {
			d := int(v) - int(want.Pix[i*4])
			worst = max(worst, max(d, -d))
		}
		if worst > 3 {
			t.Errorf("%v differs from imaging by up to %d", size, worst)
		}
	}
}

func TestResizeRefusesWhatDoesNotFit(t *testing.T) {
	ok := NewPlane(4, 4)
	short := Plane{Pix: make([]byte, 10), Stride: 4, Width: 4, Height: 4}
	if resizeOne(ok, short, short.Whole()) == nil || resizeOne(short, ok, ok.Whole()) == nil {
		t.Error("a plane without its samples was taken")
	}
	for _, box := range []Box{{-1, 0, 4, 4}, {0, 0, 5, 4}, {2, 0, 2, 4}, {0, 0, math.NaN(), 4}} {
		if resizeOne(ok, ok, box) == nil {
			t.Errorf("box %v was taken", box)
		}
	}
}

// No size, box or kernel may read or write outside of the planes.
func FuzzResize(f *testing.F) {
	f.Add(uint8(20), uint8(20), uint8(5), uint8(5), uint8(0), uint8(0))
	f.Add(uint8(200), uint8(3), uint8(250), uint8(250), uint8(10), uint8(1))
	f.Fuzz(func(t *testing.T, sw, sh, dw, dh, x, y uint8) {
		src, dst := NewPlane(int(sw)+1, int(sh)+1), NewPlane(int(dw)+1, int(dh)+1)
		box := src.Whole()
		box.X0 += float64(x) / 256 * (box.X1 - 0.01)
		box.Y0 += float64(y) / 256 * (box.Y1 - 0.01)
		if err := resizeOne(dst, src, box); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkResize(b *testing.B) {
	src, dst := NewPlane(1000, 750), NewPlane(800, 600)
	b.SetBytes(int64(len(dst.Pix)))
	for b.Loop() {
		if err := resizeOne(dst, src, src.Whole()); err != nil {
			b.Fatal(err)
		}
	}
}

func resizeOne(dst, src Plane, box Box) error { return ResizeAll([]Plane{dst}, []Plane{src}, box) }
