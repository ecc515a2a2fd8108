// Package inflate decodes DEFLATE (RFC 1951) for pictures: streams of which most
// symbols are literals, and which are read once, from their start to their end.
//
// What makes it fast: bits are refilled eight bytes at a time, two literals come
// from one look into the table where their codes are short, and matches are copied
// eight bytes at a time. It writes nothing and knows no dictionary, no zlib and no
// gzip.
//
// Invariants: memory is about 200 KiB whatever the stream claims; foreign bytes never
// panic; each stream gives what compress/flate gives or is an error there too
// (fuzzed).
package inflate
