package picture

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"testing"

	"github.com/gen2brain/jpegn"
)

// faceAt is a grey wall with soft light and a face on it.
func faceAt(width, height, x, y, radius int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for py := range height {
		for px := range width {
			v := uint8(120 + 60*px/width)
			c := color.NRGBA{v, v, v + 8, 255}
			if dx, dy := px-x, py-y; dx*dx+dy*dy < radius*radius {
				c = color.NRGBA{224, 172, 138, 255}
				if (px/6+py/6)%4 == 0 {
					c = color.NRGBA{120, 80, 60, 255}
				}
			}
			img.SetNRGBA(px, py, c)
		}
	}
	return img
}

// share is how many of a rendition's pixels have the face's colours.
func share(t *testing.T, data []byte) float64 {
	t.Helper()
	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if r, _, b, _ := img.At(x, y).RGBA(); r > b+b/4 {
				n++
			}
		}
	}
	return float64(n) / float64(img.Bounds().Dx()*img.Bounds().Dy())
}

// A cut by attention keeps a face wherever it is; the middle loses it.
func TestACutKeepsTheFace(t *testing.T) {
	wall := faceAt(900, 300, -1000, 0, 1)
	for name, c := range map[string]struct {
		img *image.NRGBA
		o   *jpegn.EncodeOptions
	}{
		"right":                {faceAt(900, 300, 780, 150, 90), nil},
		"left":                 {faceAt(900, 300, 110, 150, 90), nil},
		"below":                {faceAt(300, 900, 150, 780, 90), nil},
		"above, stored turned": {faceAt(900, 300, 110, 150, 90), &jpegn.EncodeOptions{Exif: append([]byte("Exif\x00\x00"), exifOf(6)...)}},
	} {
		data := encodeJPEG(t, c.img, c.o)
		cut := func(p Position) float64 {
			r, err := maker().Render(t.Context(), data, []Spec{{Width: 100, Height: 100, Position: p, Formats: []Format{PNG}}})
			if err != nil {
				t.Fatal(err)
			}
			return share(t, r.Renditions[0].Data)
		}
		if with, without := cut(Attention), cut("center"); with < 0.22 || without > 0.02 {
			t.Errorf("%s: the face takes %.2f of the cut by attention and %.2f of the middle", name, with, without)
		}
	}
	flat := image.NewNRGBA(wall.Rect)
	draw.Draw(flat, flat.Rect, image.NewUniform(color.Gray{128}), image.Point{}, draw.Src)
	var b bytes.Buffer
	if err := png.Encode(&b, flat); err != nil {
		t.Fatal(err)
	}
	if x := best(newAttention(flat).columns, 900, 300); x != 300 {
		t.Errorf("of a picture in which nothing stands out the cut begins at %d, want the middle", x)
	}
}

// A focal point that an editor has set wins.
func TestAFocalPointWinsOverAttention(t *testing.T) {
	data := encodeJPEG(t, faceAt(900, 300, 780, 150, 90), nil)
	r, err := maker().Render(t.Context(), data, []Spec{{Width: 100, Height: 100, Position: Attention, Focus: &Point{0, 0.5},
		Formats: []Format{PNG}}})
	if err != nil || share(t, r.Renditions[0].Data) > 0.01 {
		t.Errorf("the face is in the cut at the left: %v", err)
	}
}
