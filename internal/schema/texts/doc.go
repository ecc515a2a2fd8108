// Package texts says in English and Vietnamese what job types do and what the
// fields of their payloads mean: one file, read once.
//
// Invariants: a test holds that every type and every field has a text in each
// language, and that no text is of a type or field that is gone.
package texts
