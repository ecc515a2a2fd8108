//go:build amd64 || arm64

package resample

// block is how many samples the vertical kernel makes at once.
const block = 16

func vertical(dst []int16, src []byte, stride int, weights []int16) {
	if !vectors() || len(dst) < block {
		verticalGo(dst, src, stride, weights)
		return
	}
	_ = src[(len(weights)-1)*stride+len(dst)-1] // the kernel does not check
	verticalVectors(&dst[0], &src[0], len(dst), stride, &weights[0], len(weights))
}

// horizontal wants windows that lie in line: see filter.inside.
func horizontal(dst []byte, line []int16, f filter) {
	whole := len(dst) &^ 3
	if !vectors() || whole == 0 {
		horizontalGo(dst, line, f)
		return
	}
	_ = f.weights[len(dst)*f.taps-1] // the kernel does not check
	horizontalVectors(&dst[0], &line[0], whole, &f.start[0], &f.weights[0], f.taps)
	if whole < len(dst) {
		horizontalGo(dst[whole:], line, filter{taps: f.taps, start: f.start[whole:], weights: f.weights[whole*f.taps:]})
	}
}

// verticalVectors makes n ≥ 16 samples; the last block overlaps the one before.
//
//go:noescape
func verticalVectors(dst *int16, src *byte, n, stride int, weights *int16, taps int)

// horizontalVectors makes n samples, a multiple of 4; taps is a multiple of 8.
//
//go:noescape
func horizontalVectors(dst *byte, line *int16, n int, start *int32, weights *int16, taps int)
