package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"testing"

	"github.com/gen2brain/avif"
)

// fourCorners is red, green, blue and white from the top left in the order of reading.
func fourCorners(width, height int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			c := color.NRGBA{255, 0, 0, 255}
			switch right, below := x >= width/2, y >= height/2; {
			case right && below:
				c = color.NRGBA{255, 255, 255, 255}
			case right:
				c = color.NRGBA{0, 255, 0, 255}
			case below:
				c = color.NRGBA{0, 0, 255, 255}
			}
			img.SetNRGBA(x, y, c)
		}
	}
	return img
}

func encodeAVIF(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := avif.Encode(&b, img, avif.Options{Quality: 90, Speed: 10}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// turnedAVIF adds the boxes irot and imir to an AVIF: they replace two properties that a viewer
// does without.
func turnedAVIF(t testing.TB, data []byte, turns, axis byte) []byte {
	t.Helper()
	out := bytes.Clone(data)
	for _, change := range []struct {
		kind string
		now  string
		set  byte
	}{{"pixi", "irot", turns}, {"colr", "imir", axis}} {
		at := bytes.Index(out, []byte(change.kind))
		if at < 0 {
			t.Fatalf("it has no box %s", change.kind)
		}
		copy(out[at:], change.now)
		out[at+4] = change.set
	}
	return out
}

func TestAnAVIFIsReadAndWritten(t *testing.T) {
	data := encodeAVIF(t, fourCorners(320, 160))
	r, err := maker().Render(t.Context(), data, []Spec{{Width: 64, Height: 32, Mode: Fit},
		{Width: 64, Height: 32, Mode: Fit, Formats: []Format{PNG}}})
	if err != nil || r.Header.Format != AVIF || r.Header.StoredWidth != 320 || r.Header.StoredHeight != 160 {
		t.Fatalf("%+v, %v", r.Header, err)
	}
	if small, err := Inspect(r.Renditions[0].Data); err != nil || small.Format != AVIF || small.StoredWidth != 64 {
		t.Errorf("its thumbnail is %+v, %v", small, err)
	}
	corners(t, r.Renditions[1].Data, "red", "green", "blue", "white")
}

// A picture that is kept turned is shown upright.
func TestATurnedAVIFIsUpright(t *testing.T) {
	data := encodeAVIF(t, fourCorners(320, 160))
	for _, c := range []struct {
		turns, axis byte
		want        [4]string // top left, top right, bottom left, bottom right
	}{
		{0, 0, [4]string{"blue", "white", "red", "green"}}, // top and bottom are exchanged
		{0, 1, [4]string{"green", "red", "white", "blue"}},
		{1, 1, [4]string{"white", "green", "blue", "red"}}, // a quarter against the clock, then left and right
		{2, 0, [4]string{"green", "red", "white", "blue"}},
		{3, 1, [4]string{"red", "blue", "green", "white"}},
	} {
		r, err := maker().Render(t.Context(), turnedAVIF(t, data, c.turns, c.axis),
			[]Spec{{Width: 80, Height: 80, Mode: Fit, Formats: []Format{PNG}}})
		if err != nil {
			t.Errorf("%d, %d: %v", c.turns, c.axis, err)
			continue
		}
		corners(t, r.Renditions[0].Data, c.want[:]...)
	}
}

// corners compares what a PNG shows with names of colours.
func corners(t *testing.T, data []byte, want ...string) {
	t.Helper()
	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	b := img.Bounds()
	for i, at := range []image.Point{{b.Dx() / 4, b.Dy() / 4}, {b.Dx() * 3 / 4, b.Dy() / 4}, {b.Dx() / 4, b.Dy() * 3 / 4},
		{b.Dx() * 3 / 4, b.Dy() * 3 / 4}} {
		red, green, blue, _ := img.At(at.X, at.Y).RGBA()
		name := map[[3]bool]string{{true, false, false}: "red", {false, true, false}: "green",
			{false, false, true}: "blue", {true, true, true}: "white"}[[3]bool{red > 1<<15, green > 1<<15, blue > 1<<15}]
		if name != want[i] {
			t.Errorf("corner %d is %q (%d %d %d), want %q", i, name, red>>8, green>>8, blue>>8, want[i])
		}
	}
}

// An AVIF that ends early, or claims another size than it has, is refused before much is
// decoded.
func TestADamagedAVIFIsRefused(t *testing.T) {
	whole := encodeAVIF(t, fourCorners(320, 160))
	size := bytes.Index(whole, []byte("ispe")) + 8
	claiming := func(side uint32) []byte {
		data := bytes.Clone(whole)
		binary.BigEndian.PutUint32(data[size:], side)
		binary.BigEndian.PutUint32(data[size+4:], side)
		return data
	}
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"60,000² pixels": {claiming(60_000), ErrTooLarge},
		"no pixels":      {claiming(0), ErrCorrupt},
		"half of it":     {whole[:len(whole)/2], ErrCorrupt},
		"no content":     {append(bytes.Clone(whole[:bytes.Index(whole, []byte("mdat"))+4]), make([]byte, 300)...), ErrCorrupt},
		"that moves":     {append(bytes.Clone(whole), "\x00\x00\x00\x08moov"...), ErrUnsupported},
		"HEIC":           {[]byte("\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic"), ErrUnsupported},
	} {
		if _, err := maker().Render(t.Context(), c.data, []Spec{{Width: 64, Height: 64}}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
