package jpegplane

import (
	"math/bits"
	"slices"
)

// pass is one scan of a progressive JPEG (T.81, G).
type pass struct {
	planes      []int // by index
	dc, ac      []*huffman
	first, last int // zigzag indices
	fine        bool
	shift       uint // the bit that the pass gives
	endRun      int  // blocks to come that have no more coefficients

}

// history is what passes have found of one component so far: for each block the
// coefficients that the scale needs, and which of all 64 are not zero, as finer
// passes depend on that.
type history struct {
	across, down int // blocks, whole MCUs
	keep         int // coefficients a block
	kept         []int16
	known        []uint64
}

func (d *decoder) passHeader(b []byte) error {
	if len(b) < 6 {
		return unsupported("scan")
	}
	n := int(b[0])
	if n < 1 || n > len(d.planes) || len(b) != 4+2*n {
		return unsupported("scan")
	}
	p := pass{first: int(b[1+2*n]), last: int(b[2+2*n]), fine: b[3+2*n]>>4 != 0, shift: uint(b[3+2*n] & 15)}
	if err := d.passComponents(&p, b[1:1+2*n]); err != nil {
		return err
	}
	if err := p.check(); err != nil {
		return err
	}
	d.pass = p
	return nil
}

// passComponents reads which components a pass holds, in their order, and by
// which tables.
func (d *decoder) passComponents(p *pass, b []byte) error {
	for ; len(b) > 0; b = b[2:] {
		at := slices.IndexFunc(d.planes, func(plane Plane) bool { return plane.id == b[0] })
		tables := b[1]
		if at < 0 || tables>>4 > 3 || tables&15 > 3 || len(p.planes) > 0 && at <= p.planes[len(p.planes)-1] {
			return unsupported("scan")
		}
		p.planes = append(p.planes, at)
		p.dc, p.ac = append(p.dc, d.tables[0][tables>>4]), append(p.ac, d.tables[1][tables&15])
	}
	return nil
}

// check refuses passes that T.81 does not have (G.1.1.1), or whose table is missing.
func (p *pass) check() error {
	switch {
	case p.last > 63 || p.first > p.last || p.shift > 13:
		return unsupported("scan")
	case p.first == 0 && p.last != 0, p.first > 0 && len(p.planes) > 1: // DC alone; AC of one component
		return unsupported("scan")
	case p.first > 0 && p.ac[0] == nil, p.first == 0 && !p.fine && slices.Contains(p.dc, nil):
		return unsupported("a table is missing")
	}
	return nil
}

// passes decodes all scans, then makes the samples.
func (d *decoder) passes() error {
	for i := range d.planes {
		p := &d.planes[i]
		if d.hmax%p.h != 0 || d.vmax%p.v != 0 {
			return unsupported("sampling")
		}
		p.table, p.Across, p.Down = p.Across, d.hmax/p.h, d.vmax/p.v
	}
	across, down := d.allocate()
	histories := make([]history, len(d.planes))
	for i := range histories {
		p := &d.planes[i]
		h := &histories[i]
		h.across, h.down, h.keep = across*p.h, down*p.v, lastOf(d.scale)+1
		h.kept, h.known = make([]int16, h.across*h.down*h.keep), make([]uint64, h.across*h.down)
	}
	for more := true; more; {
		// At an eighth only the DC passes matter.
		if d.pass.first == 0 || d.scale > 1 {
			if !d.onePass(newWindow(d.rest), histories, across, down) {
				return unsupported("it is damaged")
			}
		}
		d.rest = d.rest[scanLength(d.rest):]
		var err error
		if more, err = d.headers(); err != nil {
			return err
		}
	}
	return d.samples(histories)
}

// onePass walks the blocks of one scan: MCU by MCU where it holds several
// components, block by block else (T.81, A.2).
func (d *decoder) onePass(w *window, histories []history, across, down int) bool {
	p := &d.pass
	if len(p.planes) == 1 {
		c := &d.planes[p.planes[0]]
		across, down = ceil(ceil(d.width, c.Across), 8), ceil(ceil(d.height, c.Down), 8)
	}
	done := 0
	for y := range down {
		for x := range across {
			if !d.restart(w, done) || !d.unit(&w.reader, histories, x, y) || w.overrun() {
				return false
			}
			done++
		}
	}
	for i := range d.planes {
		d.planes[i].prediction = 0
	}
	return true
}

// unit decodes the pass's part of one MCU.
func (d *decoder) unit(r *reader, histories []history, x, y int) bool {
	p := &d.pass
	if len(p.planes) == 1 {
		at := p.planes[0]
		return p.block(r, 0, &d.planes[at], &histories[at], y*histories[at].across+x)
	}
	for i, at := range p.planes {
		c, h := &d.planes[at], &histories[at]
		for v := range c.v {
			for u := range c.h {
				if !p.block(r, i, c, h, (y*c.v+v)*h.across+x*c.h+u) {
					return false
				}
			}
		}
	}
	return true
}

func (p *pass) block(r *reader, i int, c *Plane, h *history, index int) bool {
	kept := h.kept[index*h.keep:][:h.keep]
	switch {
	case p.first > 0 && p.fine:
		return p.refine(r, kept, &h.known[index])
	case p.first > 0:
		return p.coarse(r, kept, &h.known[index])
	case p.fine:
		kept[0] |= int16(r.take(1) << p.shift)
		return true
	}
	size, ok := r.symbol(p.dc[i])
	if !ok || size > 15 {
		return false
	}
	if size > 0 {
		c.prediction += extend(r.take(uint(size)), uint(size))
	}
	kept[0] = int16(c.prediction << p.shift)
	return true
}

// coarse is the first pass over a band of AC coefficients (T.81, G.1.2.2).
func (p *pass) coarse(r *reader, kept []int16, known *uint64) bool {
	if p.endRun > 0 {
		p.endRun--
		return true
	}
	for k := p.first; k <= p.last; k++ {
		symbol, ok := r.symbol(p.ac[0])
		if !ok {
			return false
		}
		run, size := int(symbol>>4), uint(symbol&15)
		if size == 0 {
			if run < 15 {
				p.endRun = 1<<run - 1 + int(r.take(uint(run)))
				return true
			}
			k += 15
			continue
		}
		if k += run; k > p.last {
			return false
		}
		v := extend(r.acc>>((64-size)&63), size)
		r.drop(size)
		*known |= 1 << k
		if k < len(kept) {
			kept[k] = int16(v << p.shift)
		}
	}
	return true
}

// refine is a later pass, which gives one more bit of each coefficient
// (T.81, G.1.2.3).
func (p *pass) refine(r *reader, kept []int16, known *uint64) bool {
	k := p.first
	for p.endRun == 0 && k <= p.last {
		symbol, ok := r.symbol(p.ac[0])
		if !ok {
			return false
		}
		run, size := int(symbol>>4), symbol&15
		var v int16
		switch {
		case size > 1:
			return false
		case size == 1:
			v = int16(1) << p.shift
			if r.take(1) == 0 {
				v = -v
			}
		case run < 15:
			p.endRun = 1<<run + int(r.take(uint(run)))
			continue
		}
		next, ok := p.zeros(k, run, *known)
		p.correct(r, kept, *known, k, min(next, p.last+1))
		if k = next; !ok || k > p.last {
			return v == 0 && k > p.last
		}
		if v != 0 {
			*known |= 1 << k
			if k < len(kept) {
				kept[k] = v
			}
		}
		k++
	}
	if p.endRun > 0 {
		p.correct(r, kept, *known, k, p.last+1)
		p.endRun--
	}
	return true
}

// zeros finds the coefficient at or after k that comes behind run zeros.
func (p *pass) zeros(k, run int, known uint64) (at int, ok bool) {
	free := ^known >> k << k
	for range run {
		free &= free - 1
	}
	at = bits.TrailingZeros64(free)
	return at, at <= p.last
}

// correct reads a bit for each coefficient in [from, to) that is not zero.
func (p *pass) correct(r *reader, kept []int16, known uint64, from, to int) {
	if from >= to {
		return
	}
	known = known >> from << from
	if to < 64 {
		known &= 1<<to - 1
	}
	for known != 0 {
		k := bits.TrailingZeros64(known)
		if k >= len(kept) {
			break
		}
		known &= known - 1
		if r.take(1) == 0 {
			continue
		}
		if step := int16(1) << p.shift; kept[k] < 0 {
			kept[k] -= step
		} else {
			kept[k] += step
		}
	}
	for left := uint(bits.OnesCount64(known)); left > 0; {
		n := min(left, 16)
		r.take(n)
		left -= n
	}
}

// samples transforms all blocks.
func (d *decoder) samples(histories []history) error {
	var c [32]int32
	for i := range d.planes {
		p, h := &d.planes[i], &histories[i]
		if p.quant = d.quants[p.table]; p.quant == nil {
			return unsupported("a table is missing")
		}
		for y := range h.down {
			for x := range h.across {
				for k, v := range h.kept[(y*h.across+x)*h.keep:][:h.keep] {
					c[k&31] = int32(v)
				}
				p.transform((y*p.Stride+x)*d.scale, d.scale, &c)
			}
		}
	}
	return nil
}
