package picture

import (
	"cmp"
	"image"
	"image/color"
	"slices"
)

// colourBits of each channel tell colours apart while a palette is made.
const colourBits = 5

// bin gathers the pixels whose upper bits are equal.
type bin struct {
	index         uint16
	count         uint32
	red, green, b uint64 // sums
}

func (b bin) part(axis int) uint16 { return b.index >> (colourBits * (2 - axis)) & (1<<colourBits - 1) }

// paletted reduces a picture to at most 255 colours and, where it has holes, a
// transparent one: median cut, no dithering, as noise that changes from frame
// to frame is seen and does not compress.
func paletted(img *image.NRGBA) *image.Paletted {
	bins, holes := histogram(img)
	boxes := medianCut(bins, 255)
	palette := make(color.Palette, 0, 256)
	var table [1 << (3 * colourBits)]uint8
	for i, box := range boxes {
		var sum bin
		for _, b := range box {
			sum.count += b.count
			sum.red, sum.green, sum.b = sum.red+b.red, sum.green+b.green, sum.b+b.b
			table[b.index] = uint8(i)
		}
		n := uint64(sum.count)
		palette = append(palette, color.NRGBA{byte((sum.red + n/2) / n), byte((sum.green + n/2) / n),
			byte((sum.b + n/2) / n), 255})
	}
	hole := uint8(len(palette))
	if holes || len(palette) == 0 {
		palette = append(palette, color.NRGBA{})
	}
	out := image.NewPaletted(img.Rect, palette)
	for i := range out.Pix {
		px := img.Pix[4*i:][:4]
		if px[3] < 128 {
			out.Pix[i] = hole
		} else {
			out.Pix[i] = table[binOf(px)]
		}
	}
	return out
}

func binOf(px []byte) uint16 {
	return uint16(px[0]>>3)<<10 | uint16(px[1]>>3)<<5 | uint16(px[2]>>3)
}

// histogram counts the opaque pixels of an image without padding.
func histogram(img *image.NRGBA) (bins []bin, holes bool) {
	var all [1 << (3 * colourBits)]bin
	for i := 0; i+4 <= len(img.Pix); i += 4 {
		px := img.Pix[i:][:4]
		if px[3] < 128 {
			holes = true
			continue
		}
		b := &all[binOf(px)]
		b.count++
		b.red, b.green, b.b = b.red+uint64(px[0]), b.green+uint64(px[1]), b.b+uint64(px[2])
	}
	for i := range all {
		if all[i].count > 0 {
			all[i].index = uint16(i)
			bins = append(bins, all[i])
		}
	}
	return bins, holes
}

// medianCut splits the colours into at most n boxes, always the one whose
// width times pixels is largest, at the median of its longest axis.
func medianCut(bins []bin, n int) [][]bin {
	if len(bins) == 0 {
		return nil
	}
	boxes := [][]bin{bins}
	for len(boxes) < n {
		worst, worstCost, worstAxis := -1, uint64(0), 0
		for i, box := range boxes {
			axis, cost := spread(box)
			if cost > worstCost {
				worst, worstCost, worstAxis = i, cost, axis
			}
		}
		if worst < 0 {
			break
		}
		low, high := split(boxes[worst], worstAxis)
		boxes[worst] = low
		boxes = append(boxes, high)
	}
	return boxes
}

func spread(box []bin) (axis int, cost uint64) {
	var low, high [3]uint16
	low = [3]uint16{1 << 15, 1 << 15, 1 << 15}
	var count uint64
	for _, b := range box {
		count += uint64(b.count)
		for a := range 3 {
			low[a], high[a] = min(low[a], b.part(a)), max(high[a], b.part(a))
		}
	}
	for a := range 3 {
		if c := uint64(high[a]-low[a]) * count; c > cost {
			axis, cost = a, c
		}
	}
	return axis, cost
}

func split(box []bin, axis int) (low, high []bin) {
	slices.SortStableFunc(box, func(a, b bin) int { return cmp.Compare(a.part(axis), b.part(axis)) })
	var total, sum uint64
	for _, b := range box {
		total += uint64(b.count)
	}
	cut := 1
	for i, b := range box[:len(box)-1] {
		sum += uint64(b.count)
		cut = i + 1
		if sum*2 >= total {
			break
		}
	}
	return box[:cut:cut], box[cut:]
}
