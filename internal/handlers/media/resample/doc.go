// Package resample changes the size of 8-bit planes by a separable Lanczos3
// filter in fixed point. A plane is one channel of a picture: luma, chroma or
// alpha.
//
// It knows nothing of colours, files or crops beyond a box of its source.
// Invariants: the two kernels (AVX2, NEON) have a counterpart in plain Go that gives the
// same bits (fuzzed), so that a picture does not depend on the machine that made it; no
// read leaves the source plane; the weights of each output pixel sum to
// exactly one, so that a flat plane stays flat.
package resample
