// Package analytics is the page, the export and the API of visits.
//
// It counts none itself: Port is what it needs of the handler that does.
//
// Invariant: no cell of the export begins like a formula.
package analytics
