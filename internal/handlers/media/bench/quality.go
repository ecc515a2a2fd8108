//go:build linux

package main

import (
	"fmt"
	"image"
	"math"
	"os"

	"github.com/disintegration/imaging"
)

// quality sets the renditions in folder (ours-150.jpg, sharp-150.jpg, …) beside a
// full Lanczos reduction of the picture they were made of, each beside one of
// its own cut: sharp cuts what it made smaller, at its middle, we cut whole
// pixels of the original, as the CMS does. Half a pixel is seen in SSIM.
func quality(file, folder, extension string) error {
	img, err := imaging.Open(file, imaging.AutoOrientation(true))
	if err != nil {
		return err
	}
	for _, side := range []int{150, 300, 800} {
		for _, who := range []string{"ours", "sharp"} {
			made, err := luma(fmt.Sprintf("%s/%s-%d.%s", folder, who, side, extension))
			if err != nil {
				return err
			}
			fmt.Printf("%-6s %4d  SSIM %.4f\n", who, side, ssim(gray(reference(img, who, side)), made))
		}
	}
	return nil
}

func reference(img image.Image, who string, side int) image.Image {
	width, height := img.Bounds().Dx(), img.Bounds().Dy()
	switch short := min(width, height); {
	case side == 800:
		return imaging.Fit(img, side, side, imaging.Lanczos)
	case who == "ours":
		x, y := (width+1)/2-(short+1)/2, (height+1)/2-(short+1)/2
		return imaging.Resize(imaging.Crop(img, image.Rect(x, y, x+short, y+short)), side, side, imaging.Lanczos)
	default:
		scale := float64(side) / float64(short)
		whole := imaging.Resize(img, int(math.Round(float64(width)*scale)), int(math.Round(float64(height)*scale)),
			imaging.Lanczos)
		x, y := (whole.Rect.Dx()-side+1)/2, (whole.Rect.Dy()-side+1)/2
		return imaging.Crop(whole, image.Rect(x, y, x+side, y+side))
	}
}

func similarity(reference, other string) error {
	a, err := luma(reference)
	if err != nil {
		return err
	}
	b, err := luma(other)
	if err != nil {
		return err
	}
	if a.Rect.Size() != b.Rect.Size() {
		return fmt.Errorf("sizes %v and %v", a.Rect.Size(), b.Rect.Size())
	}
	_, err = fmt.Fprintf(os.Stdout, "%.4f\n", ssim(a, b))
	return err
}
