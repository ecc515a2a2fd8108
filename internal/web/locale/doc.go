// Package locale gives the pages their texts: a data file for each language
// (en.yaml, vi.yaml), merged from the pages' own and those of the features.
//
// It is not a library for every language: numbers and times are written alike
// in all of them.
//
// Invariants: every key has a text in each language; a key without a text shows
// itself as ⟨key⟩, which a test looks for; a Catalog does not change after Load.
package locale
