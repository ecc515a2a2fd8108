//go:build linux

package main

import (
	"image"
	"os"

	"github.com/disintegration/imaging"
	"github.com/gen2brain/jpegn"
)

// ssim is the mean SSIM of the luma of two pictures of one size, over windows of
// 8×8 (Wang et al. 2004).
func ssim(a, b *image.Gray) float64 {
	var sum float64
	n := 0
	for y := 0; y+8 <= a.Rect.Dy(); y += 4 {
		for x := 0; x+8 <= a.Rect.Dx(); x += 4 {
			sum += window(a, b, x, y)
			n++
		}
	}
	return sum / float64(n)
}

func window(a, b *image.Gray, x, y int) float64 {
	const c1, c2 = 6.5025, 58.5225
	var sa, sb, saa, sbb, sab float64
	for dy := range 8 {
		for dx := range 8 {
			u, v := float64(a.Pix[(y+dy)*a.Stride+x+dx]), float64(b.Pix[(y+dy)*b.Stride+x+dx])
			sa, sb, saa, sbb, sab = sa+u, sb+v, saa+u*u, sbb+v*v, sab+u*v
		}
	}
	sa, sb = sa/64, sb/64
	va, vb, cov := saa/64-sa*sa, sbb/64-sb*sb, sab/64-sa*sb
	return (2*sa*sb + c1) * (2*cov + c2) / ((sa*sa + sb*sb + c1) * (va + vb + c2))
}

func luma(file string) (*image.Gray, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	img, err := jpegn.Decode(f)
	if err != nil {
		if _, err := f.Seek(0, 0); err != nil {
			return nil, err
		}
		if img, err = imaging.Decode(f); err != nil {
			return nil, err
		}
	}
	if p, ok := img.(*image.YCbCr); ok {
		return &image.Gray{Pix: p.Y, Stride: p.YStride, Rect: p.Rect}, nil
	}
	return gray(img), nil
}

func gray(img image.Image) *image.Gray {
	n := imaging.Clone(img)
	out := image.NewGray(n.Rect)
	for i := range out.Pix {
		px := n.Pix[4*i:]
		out.Pix[i] = byte((299*int(px[0]) + 587*int(px[1]) + 114*int(px[2]) + 500) / 1000)
	}
	return out
}
