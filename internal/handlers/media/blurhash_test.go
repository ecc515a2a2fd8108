package media

import (
	"image"
	"image/color"
	"image/draw"
	"strings"
	"testing"
)

// The mean colour stands in digits 3 to 6 of a hash, whatever else there is.
func TestBlurHashKeepsTheMeanColour(t *testing.T) {
	for _, c := range []color.RGBA{{255, 255, 255, 255}, {0, 0, 0, 255}, {200, 30, 90, 255}} {
		img := image.NewRGBA(image.Rect(0, 0, 16, 12))
		draw.Draw(img, img.Rect, image.NewUniform(c), image.Point{}, draw.Src)
		hash := blurHash(img, 4, 3)
		if len(hash) != 6+2*(4*3-1) || hash[0] != base83[3+2*9] {
			t.Fatalf("%q is no hash of 4 by 3 components", hash)
		}
		value := 0
		for _, r := range hash[2:6] {
			value = value*83 + strings.IndexRune(base83, r)
		}
		if got := (color.RGBA{uint8(value >> 16), uint8(value >> 8), uint8(value), 255}); got != c {
			t.Errorf("%v reads back as %v", c, got)
		}
	}
}

// A picture that is dark on the left and bright on the right has a large,
// negative first component across, and nothing down.
func TestBlurHashSeesAGradient(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 32, 32))
	for x := range 32 {
		for y := range 32 {
			img.Set(x, y, color.Gray{uint8(x * 8)})
		}
	}
	across, down := component(img, 1, 0), component(img, 0, 1)
	if across[0] > -0.2 || down[0] < -0.05 || down[0] > 0.05 {
		t.Errorf("across %v, down %v", across, down)
	}
}
