// Package jpegplane decodes JPEGs at a half, a quarter or an eighth of their size
// into their Y, Cb and Cr planes: what thumbnails are made of.
//
// It is not a JPEG library: sequential (in one scan) and progressive Huffman coding
// of 8 bits, grey or YCbCr, and nothing that is damaged. All else is
// ErrUnsupported, and a full decoder has to be asked. Source: ITU-T T.81.
//
// What makes it fast: byte stuffing is taken out beforehand, so that the bit reader
// refills eight bytes without a look at them; of a block's 64 coefficients only
// those are decoded that the scale needs (1, 4 or 16); the rest is walked by a
// table whose entries step over several symbols at once.
//
// Invariants: memory is a window of 64 KiB plus the reduced planes (and, of a
// progressive picture, the coefficients that are kept); foreign bytes
// never panic; a block takes at most 64 steps, so time is bounded by the size
// that the header claims, which the caller has judged.
package jpegplane
