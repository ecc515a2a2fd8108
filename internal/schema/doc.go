// Package schema describes the payloads of job types: their fields, with type,
// unit, default, example and synonyms. A description is made from the Go type of
// the payload (see [Of]) and serves to read payloads, to refuse or to name fields
// that do not exist, and to write JSON Schema.
//
// It does not judge values: that is the payload's Validate. Texts for people are
// in the package texts.
//
// Invariants:
//
//   - What Read returns has no field but the type's own, under their own names.
//   - A field and its synonym with two values are refused: nothing is guessed.
package schema
