// Package page puts what a measurement printed into a page of the documentation.
// It does not measure; it says whether the machine is quiet enough for figures of a page.
package page
