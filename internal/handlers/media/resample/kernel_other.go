//go:build !amd64 && !arm64

package resample

func vertical(dst []int16, src []byte, stride int, weights []int16) {
	verticalGo(dst, src, stride, weights)
}

func horizontal(dst []byte, line []int16, f filter) { horizontalGo(dst, line, f) }
