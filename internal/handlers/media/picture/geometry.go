package picture

import (
	"fmt"
	"math"
)

// Mode says how a picture goes into a box.
type Mode int

const (
	// Cover fills the box and cuts what stands over; small pictures are enlarged.
	Cover Mode = iota
	// Fit keeps the whole picture inside of the box.
	Fit
)

// Position is where Cover cuts: "center", "top", "bottom", "left", "right",
// "top-left", … as the CMS's setting media_thumbnail_crop_position spells them; or Attention.
type Position string

// Point lies in a picture: 0,0 is its top left corner, 1,1 its bottom right.
type Point struct{ X, Y float64 }

// Spec asks for one rendition.
type Spec struct {
	// Width and Height of the box; 0 means whatever keeps the proportions.
	Width, Height int
	Mode          Mode
	Position      Position
	// Focus wins over Position: the cut keeps as near to it as it can.
	Focus *Point
	// Enlarge lets Fit, and a box with one side only, make pictures larger.
	Enlarge bool
	// Formats to encode in; none means the format of the source.
	Formats []Format
}

// rect is a part of a picture in whole pixels.
type rect struct{ x, y, width, height int }

// place computes, for a picture of width × height, which part a spec takes and
// how large it becomes. Rounding is as Intervention Image 3 does it, so that
// thumbnails are cut where the CMS cuts them.
func (s Spec) place(width, height int) (part rect, w, h int, err error) {
	part = rect{0, 0, width, height}
	switch {
	case s.Width < 0 || s.Height < 0 || s.Width == 0 && s.Height == 0:
		return part, 0, 0, fmt.Errorf("a rendition of %d×%d is no size", s.Width, s.Height)
	case s.Width > 0 && s.Height > 0 && s.Mode == Cover:
		part.width, part.height = contain(s.Width, s.Height, width, height)
		part.x, part.y = s.offset(width, height, part.width, part.height)
		return part, s.Width, s.Height, nil
	case s.Height == 0:
		w, h = s.Width, proportional(s.Width, height, width)
	case s.Width == 0:
		w, h = proportional(s.Height, width, height), s.Height
	default:
		w, h = contain(width, height, s.Width, s.Height)
	}
	if !s.Enlarge && (w > width || h > height) {
		w, h = width, height
	}
	return part, w, h, nil
}

// Size is how large the rendition of a picture with header h becomes.
func (s Spec) Size(h Header) (width, height int, err error) {
	_, width, height, err = s.place(h.Size())
	return width, height, err
}

// contain scales width × height to the largest size inside of the box.
func contain(width, height, boxWidth, boxHeight int) (int, int) {
	w, h := boxWidth, proportional(boxWidth, height, width)
	if h > boxHeight {
		w, h = proportional(boxHeight, width, height), boxHeight
	}
	return min(w, boxWidth), h
}

func proportional(side, numerator, denominator int) int {
	return max(1, int(math.Round(float64(side)*float64(numerator)/float64(denominator))))
}

// offset is where a cut of w × h begins.
func (s Spec) offset(width, height, w, h int) (x, y int) {
	if s.Focus != nil {
		x = int(math.Round(s.Focus.X*float64(width) - float64(w)/2))
		y = int(math.Round(s.Focus.Y*float64(height) - float64(h)/2))
		return min(max(x, 0), width-w), min(max(y, 0), height-h)
	}
	// Intervention rounds the middle of both up.
	x, y = (width+1)/2-(w+1)/2, (height+1)/2-(h+1)/2
	switch s.Position {
	case "left", "top-left", "left-top", "bottom-left", "left-bottom", "left-center", "center-left", "left-middle",
		"middle-left":
		x = 0
	case "right", "top-right", "right-top", "bottom-right", "right-bottom", "right-center", "center-right",
		"right-middle", "middle-right":
		x = width - w
	}
	switch s.Position {
	case "top", "top-left", "left-top", "top-right", "right-top", "top-center", "center-top", "top-middle",
		"middle-top":
		y = 0
	case "bottom", "bottom-left", "left-bottom", "bottom-right", "right-bottom", "bottom-center", "center-bottom",
		"bottom-middle", "middle-bottom":
		y = height - h
	}
	return min(max(x, 0), width-w), min(max(y, 0), height-h)
}
