package resample

import "fmt"

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
		return fmt.Errorf("a plane of %d×%d with stride %d does not fit %d bytes", p.Width, p.Height, p.Stride, len(p.Pix))
	}
	return nil
}

// Box is a part of a plane in its own pixels; edges may lie inside a pixel.
type Box struct{ X0, Y0, X1, Y1 float64 }

// Whole is the box of all of p.
func (p Plane) Whole() Box { return Box{0, 0, float64(p.Width), float64(p.Height)} }

// Resize draws the part box of src over the whole of dst. The filter does not
// look outside of box, except where an edge cuts a pixel.
func Resize(dst, src Plane, box Box) error {
	if err := dst.check(); err != nil {
		return err
	}
	if err := src.check(); err != nil {
		return err
	}
	if !(box.X0 >= 0 && box.Y0 >= 0 && box.X1 > box.X0 && box.Y1 > box.Y0 && box.X1 <= float64(src.Width) && box.Y1 <= float64(src.Height)) {
		return fmt.Errorf("box %v is not inside a plane of %d×%d", box, src.Width, src.Height)
	}
	columns := newFilter(dst.Width, box.X0, box.X1, src.Width, horizontalStep)
	rows := newFilter(dst.Height, box.Y0, box.Y1, src.Height, 1)
	left, right := columns.span()
	right = min(right, src.Width)
	shift(columns.start, left)
	// The horizontal kernel reads whole steps; what it reads beyond the row
	// meets zero weights.
	line := make([]int16, right-left+columns.taps+horizontalStep)
	for y := range dst.Height {
		first := int(rows.start[y])
		vertical(line[:right-left], src.Pix[first*src.Stride+left:], src.Stride, rows.weightsOf(y))
		horizontal(dst.Row(y), line, columns)
	}
	return nil
}

func shift(starts []int32, by int) {
	for i := range starts {
		starts[i] -= int32(by)
	}
}
