// Package vp8plane decodes the lossy pictures of WebP at a half, a quarter or
// an eighth of their size into their Y, Cb and Cr planes: what thumbnails are
// made of.
//
// It is no WebP library: key frames of VP8 only, without the container, and
// without the loop filter, which smooths the edges of 4×4 blocks and of which
// nothing is left once the blocks have shrunk. All that is damaged is
// ErrUnsupported, and a full decoder has to be asked. Source: RFC 6386.
//
// What makes it fast: the arithmetic decoder refills eight bytes at a time, stays
// in registers for a whole block and does not branch on signs; the inverse
// transform has a kernel (AVX2), which gives the bits of plain Go (fuzzed); samples
// are averaged as soon as a row of macroblocks is done, while they are in the cache.
//
// Invariants: memory is a copy of the file, one row of macroblocks and the
// reduced planes; foreign bytes never panic; work is bounded by the size that
// the header claims, which the caller has judged.
package vp8plane
