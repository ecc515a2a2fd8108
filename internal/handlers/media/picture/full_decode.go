package picture

import (
	"image"
	"image/draw"
	"math"

	"github.com/disintegration/imaging"

	"github.com/cmsjobs/cmsjobs/internal/handlers/media/resample"
)

// fullDecode is a picture that was decoded in full, in whatever form its decoder
// gives; imaging cuts and resizes it.
type fullDecode struct{ img image.Image }

// newWhole takes an image from a decoder. Paletted pictures are converted
// first: imaging would look their indices up in its own goroutines, where a
// bad index ends the process.
func newWhole(img image.Image) fullDecode {
	switch img.(type) {
	case *image.NRGBA, *image.RGBA, *image.YCbCr, *image.Gray, *image.NRGBA64, *image.RGBA64, *image.Gray16:
		return fullDecode{img}
	}
	flat := image.NewNRGBA(image.Rect(0, 0, img.Bounds().Dx(), img.Bounds().Dy()))
	draw.Draw(flat, flat.Rect, img, img.Bounds().Min, draw.Src)
	return fullDecode{flat}
}

func (s fullDecode) covers(resample.Box) (float64, bool) { return 1, true }

func (s fullDecode) draw(box resample.Box, w, h int) (*raster, error) {
	part := image.Rect(int(math.Round(box.X0)), int(math.Round(box.Y0)), int(math.Round(box.X1)),
		int(math.Round(box.Y1)))
	part = part.Add(s.img.Bounds().Min)
	cut := s.img
	if part != s.img.Bounds() {
		if sub, ok := s.img.(interface {
			SubImage(image.Rectangle) image.Image
		}); ok {
			cut = sub.SubImage(part)
		} else {
			cut = imaging.Crop(s.img, part)
		}
	}
	return fromNRGBA(imaging.Resize(cut, w, h, imaging.Lanczos), box), nil
}
