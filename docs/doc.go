// Package docs holds the documents that the program shows as its manual. Data only:
// package manual reads them.
package docs
