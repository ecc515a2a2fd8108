// Package batches is the page and the API of Laravel's batches of jobs.
//
// It reads: Laravel itself counts, cancels and prunes batches.
package batches
