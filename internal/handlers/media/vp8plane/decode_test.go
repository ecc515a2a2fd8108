package vp8plane

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"math"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/image/webp"
)

// frameOf is the body of a simple WebP's "VP8 " chunk.
func frameOf(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte("VP8 "))
	size := int(binary.LittleEndian.Uint32(data[at+4:]))
	return data[at+8:][:size]
}

func reference(t testing.TB, file string) *image.YCbCr {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := webp.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return img.(*image.YCbCr)
}

// Without a loop filter each sample is the one that golang.org/x/image decodes.
// The files were made by cwebp -f 0 with four segments and method 6, quality 10
// and method 1, quality 98, and of one colour.
func TestSamplesAreThoseOfAFullDecoder(t *testing.T) {
	for _, name := range []string{"segments", "coarse", "fine", "flat"} {
		file := filepath.Join("testdata", name+".webp")
		want := reference(t, file)
		got, err := Decode(frameOf(t, file), 1)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		cw, ch := (want.Rect.Dx()+1)/2, (want.Rect.Dy()+1)/2
		equal(t, name+" Y", got.Y, want.Y, want.YStride, want.Rect.Dx(), want.Rect.Dy())
		equal(t, name+" Cb", got.Cb, want.Cb, want.CStride, cw, ch)
		equal(t, name+" Cr", got.Cr, want.Cr, want.CStride, cw, ch)
	}
}

func equal(t *testing.T, what string, got Plane, want []byte, stride, width, height int) {
	t.Helper()
	if got.Width != width || got.Height != height {
		t.Fatalf("%s is %d×%d, want %d×%d", what, got.Width, got.Height, width, height)
	}
	for y := range height {
		if a, b := got.Pix[y*got.Stride:][:width], want[y*stride:][:width]; !bytes.Equal(a, b) {
			t.Fatalf("%s, row %d:\n%v\nwant\n%v", what, y, a, b)
		}
	}
}

// Reduced samples are the means of those of a full decoder, which filters, up to
// what the filter does.
func TestReducedSamplesAreMeans(t *testing.T) {
	for name, most := range map[string]float64{"segments": 0.3, "coarse": 0.3, "fine": 0.3, "filtered": 2} {
		file := filepath.Join("testdata", name+".webp")
		want := reference(t, file)
		for _, k := range []int{2, 4, 8} {
			got, err := Decode(frameOf(t, file), k)
			if err != nil {
				t.Fatal(err)
			}
			if w, h := (want.Rect.Dx()+k-1)/k, (want.Rect.Dy()+k-1)/k; got.Y.Width != w || got.Y.Height != h {
				t.Errorf("%s/%d is %d×%d, want %d×%d", name, k, got.Y.Width, got.Y.Height, w, h)
			}
			if d := distance(got.Y, want, k); d > most {
				t.Errorf("%s/%d differs by %.2f", name, k, d)
			}
		}
	}
}

// distance is the mean difference of whole squares.
func distance(got Plane, want *image.YCbCr, k int) float64 {
	var sum float64
	n := 0
	for y := range want.Rect.Dy() / k {
		for x := range want.Rect.Dx() / k {
			mean := 0.0
			for i := range k * k {
				mean += float64(want.Y[(y*k+i/k)*want.YStride+x*k+i%k])
			}
			sum += math.Abs(mean/float64(k*k) - float64(got.Pix[y*got.Stride+x]))
			n++
		}
	}
	return sum / float64(n)
}

func TestWhatNeedsAFullDecoderIsSaid(t *testing.T) {
	whole := frameOf(t, "testdata/filtered.webp")
	inter := bytes.Clone(whole)
	inter[0] |= 1
	for name, c := range map[string]struct {
		frame       []byte
		denominator int
	}{
		"the loop filter": {whole, 1}, "a scale": {whole, 3}, "no frame": {nil, 2}, "no key frame": {inter, 2},
		"cut in its header": {whole[:40], 2}, "cut in its coefficients": {whole[:len(whole)*2/3], 2},
	} {
		if _, err := Decode(c.frame, c.denominator); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzAddBlock: the kernel gives the same bits as plain Go, of any coefficients, and
// touches nothing beside the block.
func FuzzAddBlock(f *testing.F) {
	f.Add([]byte{1, 0, 255, 127, 0, 128, 9}, []byte{0, 128, 255})
	f.Add([]byte{40, 0, 20, 0, 246, 255, 3, 0, 1, 0}, []byte{100})
	f.Fuzz(func(t *testing.T, coefficients, samples []byte) {
		var c [16]int16
		for i := range min(16, len(coefficients)/2) {
			c[i] = int16(binary.LittleEndian.Uint16(coefficients[2*i:]))
		}
		for stride := 4; stride < 9; stride++ {
			got := make([]byte, 3*stride+4+8)
			copy(got, samples)
			want := bytes.Clone(got)
			addBlock(got, stride, &c)
			addBlockGo(want, stride, &c)
			if !bytes.Equal(got, want) {
				t.Fatalf("%v: %v, want %v", c, got, want)
			}
		}
	})
}

// FuzzDecode: foreign bytes neither panic nor make planes of another size than
// the header's.
func FuzzDecode(f *testing.F) {
	for _, name := range []string{"segments", "coarse", "fine", "flat", "filtered"} {
		f.Add(frameOf(f, "testdata/"+name+".webp"), uint8(2))
	}
	f.Fuzz(func(t *testing.T, frame []byte, k uint8) {
		if len(frame) > 10 { // a small one: 255×255 at most
			frame = bytes.Clone(frame)
			frame[7], frame[9] = 0, 0
		}
		p, err := Decode(frame, 1<<(k%4))
		if err == nil && (p.Y.Width > 255 || len(p.Y.Pix) < (p.Y.Height-1)*p.Y.Stride+p.Y.Width) {
			t.Fatalf("%d×%d, %d bytes", p.Y.Width, p.Y.Height, len(p.Y.Pix))
		}
	})
}
