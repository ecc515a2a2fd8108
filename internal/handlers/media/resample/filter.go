package resample

import (
	"math"
	"sync"
)

// Fixed point: weights carry 14 bits after the point, the line between the
// two passes 6.
const (
	weightBits = 14
	lineBits   = 6
	// support of the filter on each side, in source pixels at scale one.
	support = 3
	// horizontalStep is how many samples the horizontal kernel takes at once.
	horizontalStep = 8
)

// filter holds, for each output pixel of one direction, where its window
// begins and the weights over it. All windows have the same length.
type filter struct {
	taps    int
	start   []int32
	weights []int16
	limit   int
}

func (f filter) weightsOf(i int) []int16 { return f.weights[i*f.taps:][:f.taps] }

// span is the range of source pixels that any window touches with a weight.
func (f filter) span() (first, end int) {
	first, end = f.limit, 0
	for _, s := range f.start {
		first = min(first, int(s))
		end = max(end, int(s)+f.taps)
	}
	return first, min(end, f.limit)
}

// inside panics when a window reaches beyond n samples, which the horizontal
// kernel, asked for each row, does not look at again.
func (f filter) inside(n int) {
	for _, s := range f.start {
		if s < 0 || int(s)+f.taps > n {
			panic("resample: a window lies outside of its line")
		}
	}
}

// newFilter spreads n output pixels over [from, to) of a source of limit
// pixels. The length of the windows is rounded up to a multiple of step.
func newFilter(n int, from, to float64, limit, step int) filter {
	scale := (to - from) / float64(n)
	stretch := math.Max(scale, 1)
	radius := support * stretch
	low, high := int(math.Floor(from)), min(int(math.Ceil(to)), limit)
	taps := min(int(2*radius)+1, high-low) // no window of 2·radius holds more pixels
	f := filter{taps: (taps + step - 1) / step * step, start: make([]int32, n), limit: limit}
	f.weights = make([]int16, n*f.taps)
	window, t := make([]float64, taps), table()
	for i := range n {
		centre := from + (float64(i)+0.5)*scale - 0.5
		first := int(math.Ceil(centre - radius))
		first = max(min(first, high-taps), low)
		f.start[i] = int32(first)
		for k := range window {
			window[k] = lanczos(t, (float64(first+k)-centre)/stretch)
		}
		quantise(f.weightsOf(i), window)
	}
	return f
}

// quantise writes weights that sum to exactly 1<<weightBits. What rounding
// leaves goes to the largest.
func quantise(to []int16, window []float64) {
	var sum float64
	for _, w := range window {
		sum += w
	}
	rest, largest := int32(1<<weightBits), 0
	for k, w := range window {
		q := int32(math.Round(w / sum * (1 << weightBits)))
		to[k] = int16(q)
		rest -= q
		if to[k] > to[largest] {
			largest = k
		}
	}
	to[largest] += int16(rest)
}

// fine is how many steps of the filter's table make one pixel.
const fine = 1024

// table holds the filter at steps of 1/fine from 0 to its support.
var table = sync.OnceValue(func() *[support*fine + 2]float64 {
	var t [support*fine + 2]float64
	for i := range t {
		t[i] = exact(float64(i) / fine)
	}
	return &t
})

// lanczos reads the filter from the table, straight lines in between: right to
// 2e-6, while a weight has 14 bits.
func lanczos(t *[support*fine + 2]float64, x float64) float64 {
	x = math.Abs(x) * fine
	if x >= support*fine {
		return 0
	}
	i := int(x)
	return t[i] + (t[i+1]-t[i])*(x-float64(i))
}

func exact(x float64) float64 {
	switch {
	case x < 1e-9:
		return 1
	case x >= support:
		return 0
	}
	px := math.Pi * x
	return support * math.Sin(px) * math.Sin(px/support) / (px * px)
}
