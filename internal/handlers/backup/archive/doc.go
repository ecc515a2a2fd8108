// Package archive writes and reads one stream that holds many files: tar with
// zstd or gzip, or zip; encrypted to age recipients where wanted.
//
// It is not a file system and restores nothing: it hands entries to a visitor.
// Invariants: writing never needs a second copy on disk and bounded memory;
// reading refuses every entry that is no regular file or whose name leaves its
// folder, and finds a stream that was cut or changed wherever the format can
// (zstd and zip checksums, gzip's CRC, age's authentication).
package archive
