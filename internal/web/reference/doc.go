// Package reference makes of the OpenAPI document of the API what a page for people
// shows: calls by area, their parameters, schemas as tables, examples.
//
// Invariants:
//
//   - Everything comes from the document. An example of a schema fits it; a test
//     holds each against its schema.
//   - Our calls stand first; those in the shapes of specifications are apart.
package reference
