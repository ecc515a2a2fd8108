// Package search is the search page, which the command palette shows as well, and
// the page of help.
//
// It finds pages, the actions that the caller may start, and jobs by id, number or
// type. It does nothing itself: actions are forms of other pages.
//
// Invariant: a query costs a bounded number of bounded questions to the ledger.
package search
