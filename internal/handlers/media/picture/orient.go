package picture

import "github.com/cmsjobs/cmsjobs/internal/handlers/media/resample"

// EXIF's eight orientations are a transposition (5–8) followed by mirrors.
func transposed(o int) bool     { return o >= 5 }
func mirroredAcross(o int) bool { return o == 2 || o == 3 || o == 6 || o == 7 }
func mirroredDown(o int) bool   { return o == 3 || o == 4 || o == 7 || o == 8 }

// stored finds the part of the stored picture that shows as part of the
// upright one of width × height.
func stored(part rect, o, width, height int) resample.Box {
	if mirroredAcross(o) {
		part.x = width - part.x - part.width
	}
	if mirroredDown(o) {
		part.y = height - part.y - part.height
	}
	if transposed(o) {
		part = rect{part.y, part.x, part.height, part.width}
	}
	x, y := float64(part.x), float64(part.y)
	return resample.Box{X0: x, Y0: y, X1: x + float64(part.width), Y1: y + float64(part.height)}
}

// upright turns one plane as orientation o says.
func upright(p resample.Plane, o int) resample.Plane {
	if o <= 1 {
		return p
	}
	out := resample.NewPlane(p.Width, p.Height)
	if transposed(o) {
		out = resample.NewPlane(p.Height, p.Width)
	}
	for y := range p.Height {
		for x, v := range p.Row(y) {
			tx, ty := x, y
			if transposed(o) {
				tx, ty = y, x
			}
			if mirroredAcross(o) {
				tx = out.Width - 1 - tx
			}
			if mirroredDown(o) {
				ty = out.Height - 1 - ty
			}
			out.Pix[ty*out.Stride+tx] = v
		}
	}
	return out
}
