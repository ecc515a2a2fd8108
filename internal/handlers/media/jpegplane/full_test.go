package jpegplane

import (
	"bytes"
	"image"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gen2brain/jpegn"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/resample"
)

// The transform in vectors equals the one in plain Go on any coefficients, and
// writes nothing beside its block.
func FuzzInverseEqualsItsDuplicate(f *testing.F) {
	for i := range 32 {
		f.Add(uint64(i), i%2 == 0, uint16(1)<<(i%16)-1)
	}
	f.Fuzz(func(t *testing.T, seed uint64, whole bool, span uint16) {
		n := 6
		if whole {
			n = 8
		}
		r := rand.New(rand.NewPCG(seed, 2))
		var c [64]int16
		for i := range c {
			c[i] = int16(r.IntN(2*int(span)+1) - int(span))
		}
		const stride = 13
		got, want := make([]byte, 8*stride), make([]byte, 8*stride)
		inverse(got[2:], stride, &c, bases()[n])
		inverseGo(want[2:], stride, &c, bases()[n])
		if !bytes.Equal(got, want) {
			t.Fatalf("n=%d of %v:\n%v\nwant\n%v", n, c, got, want)
		}
	})
}

// The plain transform is the cosine transform of T.81, A.3.3.
func TestInverseIsTheCosineTransform(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		var c [64]int16
		c[0] = int16(r.IntN(800) - 400)
		for range 12 {
			c[1+r.IntN(63)] = int16(r.IntN(120) - 60)
		}
		var got [64]byte
		inverseGo(got[:], 8, &c, bases()[8])
		for y := range 8 {
			for x := range 8 {
				sum := 128.0
				for v := range 8 {
					for u := range 8 {
						sum += weight(u) * weight(v) / 4 * float64(c[8*v+u]) * math.Cos(
							float64(2*x+1)*float64(u)*math.Pi/16) * math.Cos(float64(2*y+1)*float64(v)*math.Pi/16)
					}
				}
				if d := math.Abs(math.Min(math.Max(sum, 0), 255) - float64(got[8*y+x])); d > 1 {
					t.Fatalf("at %d,%d: %d, want %.2f", x, y, got[8*y+x], sum)
				}
			}
		}
	}
}

func weight(u int) float64 {
	if u == 0 {
		return math.Sqrt(0.5)
	}
	return 1
}

// At three quarters a picture looks as the whole one made smaller.
func TestThreeQuartersLookAsTheWhole(t *testing.T) {
	img := image.NewGray(image.Rect(0, 0, 200, 120))
	for i := range img.Pix {
		x, y := float64(i%200), float64(i/200)
		img.Pix[i] = byte(128 + 60*math.Sin(x/5) + 40*math.Cos(y/7+x/31))
	}
	p, err := Decode(encode(t, img, jpegn.EncodeOptions{Quality: 98, Subsampling: jpegn.SubsampleGray}), 6)
	if err != nil {
		t.Fatal(err)
	}
	got := p.Planes[0]
	want := resample.NewPlane(150, 90)
	whole := resample.Plane{Pix: img.Pix, Stride: img.Stride, Width: 200, Height: 120}
	if err := resample.ResizeAll([]resample.Plane{want}, []resample.Plane{whole}, whole.Whole()); err != nil {
		t.Fatal(err)
	}
	if got.Width != 150 || got.Height != 90 {
		t.Fatalf("%d×%d", got.Width, got.Height)
	}
	var sum float64
	for y := range 90 {
		for x := range 150 {
			sum += math.Abs(float64(got.Pix[y*got.Stride+x]) - float64(want.Pix[y*want.Stride+x]))
		}
	}
	if mean := sum / (150 * 90); mean > 1.5 {
		t.Errorf("it differs by %.2f", mean)
	}
}
