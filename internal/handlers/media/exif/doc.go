// Package exif reads the orientation out of EXIF data and writes a cleaned copy
// of it: which way up, camera, exposure, author and copyright are kept; where
// the picture was taken, maker notes, serial numbers and embedded previews are
// not.
//
// It is not a general EXIF library. Invariants: it reads foreign bytes and never
// panics, loops or allocates more than a small multiple of its input; Clean
// copies only tags that it knows (an allow-list), so nothing private gets
// through by being unknown. Source: CIPA DC-008 (Exif 2.32), TIFF 6.0.
package exif
