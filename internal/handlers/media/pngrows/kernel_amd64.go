package pngrows

import "golang.org/x/sys/cpu"

// vectors says whether the kernels of kernel_amd64.s (AVX2) run here.
func vectors() bool { return cpu.X86.HasAVX2 }

// pixelReach is how many bytes the kernels below read and write of each pixel.
const pixelReach = 8

// unfilterVectors undoes a filter of the pixels from the first on whose reach lies
// in the row, and says how many bytes these have. stride is 8 at most.
func unfilterVectors(kind byte, row, raw, above []byte, stride int) int {
	if !vectors() || len(row) < pixelReach {
		return 0
	}
	n := (len(row)-pixelReach)/stride + 1
	_, _ = raw[len(row)-1], above[len(row)-1] // the kernels do not check
	switch kind {
	case sub:
		subVectors(&row[0], &raw[0], n, stride)
	case average:
		averageVectors(&row[0], &raw[0], &above[0], n, stride)
	case paeth:
		paethVectors(&row[0], &raw[0], &above[0], n, stride)
	default:
		return 0
	}
	return n * stride
}

// addColumns adds the samples of a row to sums.
func addColumns(sums []uint16, row []byte) {
	done := 0
	if whole := len(row) &^ 15; vectors() && whole > 0 {
		_ = sums[len(row)-1] // the kernel does not check
		addVectors(&sums[0], &row[0], whole)
		done = whole
	}
	addColumnsGo(sums[done:], row[done:])
}

// filterRow filters the bytes of a row from stride on by Sub, Up and Paeth, adds how
// far they are from zero to sums and says where it stopped.
func filterRow(tries *[3][]byte, row, above []byte, stride int, sums *[3]uint64) int {
	n := (len(row) - stride) &^ 31
	if !vectors() || n <= 0 {
		return stride
	}
	end := stride + n - 1
	_, _, _, _ = above[end], tries[0][end], tries[1][end], tries[2][end] // the kernel does not check
	*sums = filterVectors(&tries[0][stride], &tries[1][stride], &tries[2][stride], &row[stride], &above[stride], n,
		stride)
	return stride + n
}

//go:noescape
func subVectors(row, raw *byte, n, stride int)

//go:noescape
func averageVectors(row, raw, above *byte, n, stride int)

//go:noescape
func paethVectors(row, raw, above *byte, n, stride int)

// addVectors adds n samples, a multiple of 16.
//
//go:noescape
func addVectors(sums *uint16, row *byte, n int)

// filterVectors filters n bytes, a multiple of 32.
//
//go:noescape
func filterVectors(sub, up, paeth, row, above *byte, n, stride int) (sums [3]uint64)
