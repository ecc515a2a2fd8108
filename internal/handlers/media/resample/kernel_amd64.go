package resample

import "golang.org/x/sys/cpu"

// block is how many samples the vertical kernel makes at once.
const block = 16

func vertical(dst []int16, src []byte, stride int, weights []int16) {
	if !cpu.X86.HasAVX2 || len(dst) < block {
		verticalGo(dst, src, stride, weights)
		return
	}
	_ = src[(len(weights)-1)*stride+len(dst)-1] // the kernel does not check
	verticalAVX2(&dst[0], &src[0], len(dst), stride, &weights[0], len(weights))
}

// horizontal wants windows that lie in line: see filter.inside.
func horizontal(dst []byte, line []int16, f filter) {
	whole := len(dst) &^ 3
	if !cpu.X86.HasAVX2 || whole == 0 {
		horizontalGo(dst, line, f)
		return
	}
	_ = f.weights[len(dst)*f.taps-1] // the kernel does not check
	horizontalAVX2(&dst[0], &line[0], whole, &f.start[0], &f.weights[0], f.taps)
	if whole < len(dst) {
		horizontalGo(dst[whole:], line, filter{taps: f.taps, start: f.start[whole:], weights: f.weights[whole*f.taps:]})
	}
}

// verticalAVX2 makes n ≥ 16 samples; the last block overlaps the one before.
//
//go:noescape
func verticalAVX2(dst *int16, src *byte, n, stride int, weights *int16, taps int)

// horizontalAVX2 makes n samples, a multiple of 4; taps is a multiple of 16.
//
//go:noescape
func horizontalAVX2(dst *byte, line *int16, n int, start *int32, weights *int16, taps int)
