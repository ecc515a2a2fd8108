package vp8plane

import "golang.org/x/sys/cpu"

// addBlock adds the inverse transform of a block to 4×4 samples.
func addBlock(dst []byte, stride int, c *[16]int16) {
	if !cpu.X86.HasAVX2 {
		addBlockGo(dst, stride, c)
		return
	}
	_ = dst[3*stride+3] // the kernel does not check
	addBlockVectors(&dst[0], stride, c)
}

//go:noescape
func addBlockVectors(dst *byte, stride int, c *[16]int16)
