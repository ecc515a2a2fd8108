// Package compat writes jobs in the older shapes of the specifications (S1:
// /api/jobs, S2: /api/admin/jobs) and reads their names of fields.
//
// It decides nothing: a request is turned into the fields of /api/v1 before it
// is read, an answer is made of the views of package ops.
//
// Invariants:
//
//   - A field that has two names in one request with two values is refused.
//   - What is masked in a view stays masked.
package compat
