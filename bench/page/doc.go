// Package page puts what a measurement printed into a page of the documentation.
// It does not measure.
package page
