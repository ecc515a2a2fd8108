package jpegplane

// allocate makes the planes, whole MCUs large.
func (d *decoder) allocate() (across, down int) {
	across = (d.width + 8*d.hmax - 1) / (8 * d.hmax)
	down = (d.height + 8*d.vmax - 1) / (8 * d.vmax)
	reduced := func(n, sub int) int { return ceil(ceil(n, sub)*d.scale, 8) }
	for i := range d.planes {
		p := &d.planes[i]
		p.Width, p.Height = reduced(d.width, p.Across), reduced(d.height, p.Down)
		p.Stride = across * p.h * d.scale
		p.Pix = make([]byte, p.Stride*down*p.v*d.scale)
	}
	return across, down
}

func ceil(n, by int) int { return (n + by - 1) / by }

func (d *decoder) scan() error {
	w := newWindow(d.rest)
	across, down := d.allocate()
	mcu := d.mcu
	if d.scale > 4 {
		mcu = d.fullMCU
	}
	done := 0
	for y := range down {
		for x := range across {
			if !d.restart(w, done) {
				return unsupported("a restart marker is missing")
			}
			if !mcu(&w.reader, x, y) || w.overrun() {
				return unsupported("it is damaged")
			}
			done++
		}
	}
	return nil
}

// restart begins the next restart interval where one is due after done MCUs,
// and has the next MCU's bytes ready. It is false where the interval is missing.
func (d *decoder) restart(w *window, done int) bool {
	w.ready()
	if d.interval == 0 || done == 0 || done%d.interval != 0 {
		return true
	}
	if !w.restart(done / d.interval) {
		return false
	}
	w.ready()
	d.pass.endRun = 0
	for i := range d.planes {
		d.planes[i].prediction = 0
	}
	return true
}

func (d *decoder) mcu(r *reader, x, y int) bool {
	var coefficients [32]int32
	last := lastOf(d.scale)
	for i := range d.planes {
		p := &d.planes[i]
		for v := range p.v {
			for h := range p.h {
				clear(coefficients[:last+1])
				if !r.block(p.dc, p.ac, &coefficients, last) {
					return false
				}
				p.prediction += coefficients[0]
				coefficients[0] = p.prediction
				at := ((y*p.v+v)*p.Stride + (x*p.h + h)) * d.scale
				p.transform(at, d.scale, &coefficients)
			}
		}
	}
	return true
}

// lastOf is the last zigzag index that a scale needs.
func lastOf(scale int) int {
	switch scale {
	case 1:
		return 0
	case 2:
		return 4
	}
	return 24
}

// clamp takes a sample around zero.
func clamp(v int32) byte {
	v += 128
	if uint32(v) > 255 {
		return byte(^(v >> 31))
	}
	return byte(v)
}

// transform writes the samples of one block.
func (p *Plane) transform(at, scale int, c *[32]int32) {
	switch scale {
	case 1:
		p.Pix[at] = clamp((c[0]*int32(p.quant[0]) + 4) >> 3)
	case 2:
		p.two(at, c)
	default:
		p.four(at, c)
	}
}

// two is the inverse transform of 2×2: all its factors are an eighth.
func (p *Plane) two(at int, c *[32]int32) {
	q := p.quant
	a, b := c[0]*int32(q[0])+4, c[1]*int32(q[1])
	e, f := c[2]*int32(q[2]), c[4]*int32(q[4])
	top := p.Pix[at : at+2]
	low := p.Pix[at+p.Stride : at+p.Stride+2]
	top[0], top[1] = clamp((a+b+e+f)>>3), clamp((a-b+e-f)>>3)
	low[0], low[1] = clamp((a+b-e-f)>>3), clamp((a-b-e+f)>>3)
}

// fourth holds the zigzag indices of the 4×4 lowest coefficients, row by row.
var fourth = [16]uint8{0, 1, 5, 6, 2, 4, 7, 13, 3, 8, 12, 17, 9, 11, 18, 24}

// Factors of the four-point inverse transform, √2·cos(π/8) and √2·cos(3π/8), with
// 12 bits after the point; the eighth that is left is in the final shift.
const (
	wide   = 5352
	narrow = 2217
	fixed  = 12
)

// four is the inverse transform of 4×4: columns, then rows.
func (p *Plane) four(at int, c *[32]int32) {
	var t [16]int32
	for x := range 4 {
		f0, f1 := c[fourth[x]]*int32(p.quant[fourth[x]]), c[fourth[4+x]]*int32(p.quant[fourth[4+x]])
		f2, f3 := c[fourth[8+x]]*int32(p.quant[fourth[8+x]]), c[fourth[12+x]]*int32(p.quant[fourth[12+x]])
		a, b := f0+f2, f0-f2
		o := (f1*wide + f3*narrow + 1<<(fixed-1)) >> fixed
		e := (f1*narrow - f3*wide + 1<<(fixed-1)) >> fixed
		t[x], t[4+x], t[8+x], t[12+x] = a+o, b+e, b-e, a-o
	}
	for y := range 4 {
		f0, f1, f2, f3 := t[4*y], t[4*y+1], t[4*y+2], t[4*y+3]
		a, b := f0+f2+4, f0-f2+4
		o := (f1*wide + f3*narrow + 1<<(fixed-1)) >> fixed
		e := (f1*narrow - f3*wide + 1<<(fixed-1)) >> fixed
		row := p.Pix[at+y*p.Stride:][:4]
		row[0], row[1], row[2], row[3] = clamp((a+o)>>3), clamp((b+e)>>3), clamp((b-e)>>3), clamp((a-o)>>3)
	}
}
