// Package sitemap is the page and the API of the sitemap and its submissions.
//
// It writes none itself: Port is what it needs of the handler that does.
//
// Invariant: notes of submissions are masked as everything that a server said.
package sitemap
