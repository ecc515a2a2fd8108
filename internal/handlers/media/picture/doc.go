// Package picture makes small pictures out of large ones: it reads the header of
// a file, refuses what is too large before decoding, decodes at the lowest
// resolution that serves, cuts, resizes, turns upright and encodes.
//
// It knows no files, no database and no CMS: bytes go in, bytes come out.
// Invariants: the format is what the bytes say, never a name; nothing is
// decoded before Limits agreed to its header; orientation is always applied;
// metadata is dropped unless asked for, and places always; a decoder's panic is
// an error of that picture only; the same bytes and specs give the same result.
//
// JPEG stays in its Y, Cb and Cr planes all the way (no RGB in between), and
// smaller renditions are derived from larger ones.
package picture
