// Package media makes the small pictures that a site shows: thumbnails of the
// CMS's own sizes and names, responsive widths, WebP and AVIF copies, blurred
// placeholders.
//
// It does not serve pictures and does not replace the CMS's media library: an
// original is never changed, unless a watermark was asked for. How pixels are
// made is package picture's matter.
//
// Invariants: a rendition is written whole or not at all (storage.Store.Put);
// running a job twice gives the same files and does no work the second time;
// of media_files only options is written, under the one key "cmsjobs", and every
// other key is kept; private files get no public thumbnails; memory is taken
// from a budget of the process before anything is decoded.
package media
