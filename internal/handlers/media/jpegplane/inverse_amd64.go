package jpegplane

import "golang.org/x/sys/cpu"

// vectors says whether inverse is fast here.
func vectors() bool { return cpu.X86.HasAVX2 }

// inverse writes the n×n samples of a block of coefficients, which are in rows
// and quantised no more.
func inverse(dst []byte, stride int, c *[64]int16, b *basis) {
	_ = dst[(b.n-1)*stride+b.n-1] // the kernel does not check
	inverseAVX2(&dst[0], stride, c, &b.rows, &b.pairs, b.n)
}

// inverseAVX2 makes n×n samples; n is 6 or 8.
//
//go:noescape
func inverseAVX2(dst *byte, stride int, c *[64]int16, rows *[8][8]int16, pairs *[4][8][2]int16, n int)
