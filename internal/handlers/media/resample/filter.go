package resample

import "math"

// Fixed point: weights carry 14 bits after the point, the line between the
// two passes 6.
const (
	weightBits = 14
	lineBits   = 6
	// support of the filter on each side, in source pixels at scale one.
	support = 3.0
	// horizontalStep is how many samples the horizontal kernel takes at once.
	horizontalStep = 16
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

// newFilter spreads n output pixels over [from, to) of a source of limit
// pixels. The length of the windows is rounded up to a multiple of step.
func newFilter(n int, from, to float64, limit, step int) filter {
	scale := (to - from) / float64(n)
	stretch := math.Max(scale, 1)
	radius := support * stretch
	low, high := int(math.Floor(from)), min(int(math.Ceil(to)), limit)
	taps := min(int(math.Ceil(radius))*2+1, high-low)
	f := filter{taps: (taps + step - 1) / step * step, start: make([]int32, n), limit: limit}
	f.weights = make([]int16, n*f.taps)
	window := make([]float64, taps)
	for i := range n {
		centre := from + (float64(i)+0.5)*scale - 0.5
		first := int(math.Ceil(centre - radius))
		first = max(min(first, high-taps), low)
		f.start[i] = int32(first)
		for k := range window {
			window[k] = lanczos((float64(first+k) - centre) / stretch)
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

func lanczos(x float64) float64 {
	x = math.Abs(x)
	switch {
	case x < 1e-9:
		return 1
	case x >= support:
		return 0
	}
	px := math.Pi * x
	return support * math.Sin(px) * math.Sin(px/support) / (px * px)
}
