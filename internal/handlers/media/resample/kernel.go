package resample

import "math"

// verticalGo is one row of the first pass: each sample of dst is the weighted
// sum of a column of len(weights) samples of src, whose rows are stride apart.
func verticalGo(dst []int16, src []byte, stride int, weights []int16) {
	const down = weightBits - lineBits
	for x := range dst {
		sum := int32(1) << (down - 1)
		for k, w := range weights {
			sum += int32(w) * int32(src[k*stride+x])
		}
		dst[x] = int16(min(max(sum>>down, math.MinInt16), math.MaxInt16))
	}
}

// horizontalGo is the second pass: each byte of dst is the weighted sum of a
// window of line.
func horizontalGo(dst []byte, line []int16, f filter) {
	const down = weightBits + lineBits
	for x := range dst {
		window := line[f.start[x]:][:f.taps]
		sum := int32(1) << (down - 1)
		for k, w := range f.weightsOf(x) {
			sum += int32(w) * int32(window[k])
		}
		dst[x] = byte(min(max(sum>>down, 0), 255))
	}
}
