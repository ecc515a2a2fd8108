// Package pngrows reads a PNG row by row and gives its average over squares of
// k×k pixels, so that memory depends on the width and on the small picture only;
// and it writes PNGs faster than the standard library does.
//
// It does not read interlaced PNGs (ErrInterlaced) and ignores what is not
// pixels: an APNG is its still picture. Invariants: no chunk is inflated but
// IDAT; no more than a few rows, the inflater's window and the reduced picture are
// kept; the kernels (AVX2) give the bits of their counterparts in plain Go (fuzzed);
// foreign bytes never panic. Source: PNG specification, third edition.
package pngrows
