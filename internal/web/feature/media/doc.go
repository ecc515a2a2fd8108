// Package media is the page and the API of pictures and their thumbnails.
//
// It generates none itself: Port is what it needs of the handler that does.
//
// Invariant: what regenerating would do is counted before a person says yes.
package media
