package resample

import (
	"errors"
	"fmt"
)

// Plane is one channel of 8-bit samples. Row y begins at Pix[y*Stride].
type Plane struct {
	Pix           []byte
	Stride        int
	Width, Height int
}

// NewPlane makes a plane of zeros without padding.
func NewPlane(width, height int) Plane {
	return Plane{Pix: make([]byte, width*height), Stride: width, Width: width, Height: height}
}

// Row is row y without padding.
func (p Plane) Row(y int) []byte { return p.Pix[y*p.Stride:][:p.Width] }

func (p Plane) check() error {
	if p.Width <= 0 || p.Height <= 0 || p.Stride < p.Width || len(p.Pix) < (p.Height-1)*p.Stride+p.Width {
		return fmt.Errorf("a plane of %d×%d with stride %d does not fit %d bytes", p.Width, p.Height, p.Stride,
			len(p.Pix))
	}
	return nil
}

func (p Plane) sized(as Plane) bool { return p.Width == as.Width && p.Height == as.Height }

// Box is a part of a plane in its own pixels; edges may lie inside a pixel.
type Box struct{ X0, Y0, X1, Y1 float64 }

// Whole is the box of all of p.
func (p Plane) Whole() Box { return Box{0, 0, float64(p.Width), float64(p.Height)} }

// ResizeAll draws the part box of each plane of src over the whole of the plane of
// dst. All are of equal sizes and share their filters, which do not look outside of
// box, except where an edge cuts a pixel.
func ResizeAll(dst, src []Plane, box Box) error {
	to, from := dst[0], src[0]
	for i := range src {
		if err := errors.Join(dst[i].check(), src[i].check()); err != nil {
			return err
		}
		if !dst[i].sized(to) || !src[i].sized(from) {
			return errors.New("planes to be resized together are not of one size")
		}
	}
	if !(box.X0 >= 0 && box.Y0 >= 0 && box.X1 > box.X0 && box.Y1 > box.Y0 && box.X1 <= float64(from.Width) &&
		box.Y1 <= float64(from.Height)) {
		return fmt.Errorf("box %v is not inside a plane of %d×%d", box, from.Width, from.Height)
	}
	columns := newFilter(to.Width, box.X0, box.X1, from.Width, horizontalStep)
	rows := newFilter(to.Height, box.Y0, box.Y1, from.Height, 1)
	left, right := columns.span()
	shift(columns.start, left)
	// The horizontal kernel reads whole steps; what it reads beyond the row
	// meets zero weights.
	line := make([]int16, right-left+columns.taps+horizontalStep)
	columns.inside(len(line))
	for i := range src {
		for y := range to.Height {
			first := int(rows.start[y])
			vertical(line[:right-left], src[i].Pix[first*src[i].Stride+left:], src[i].Stride, rows.weightsOf(y))
			horizontal(dst[i].Row(y), line, columns)
		}
	}
	return nil
}

func shift(starts []int32, by int) {
	for i := range starts {
		starts[i] -= int32(by)
	}
}
