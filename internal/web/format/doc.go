// Package format writes numbers, sizes and durations for people.
//
// It is the same in all languages of the pages and knows no texts of theirs.
package format
