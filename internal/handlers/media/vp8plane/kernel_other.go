//go:build !amd64

package vp8plane

func addBlock(dst []byte, stride int, c *[16]int16) { addBlockGo(dst, stride, c) }
