// Package redact takes secrets out of what people and programs see: payloads,
// error texts, log lines, addresses.
//
// It is no access control: anyone who may not see a thing at all is refused by
// package access. It knows secrets by the names of their keys and by their
// shapes; a secret that looks like an ordinary word under an ordinary name
// stays.
//
// Invariants:
//
//   - What is hidden becomes Mask; nothing of its length or beginning is left.
//   - Text and JSON of the same value hide the same secrets.
//   - JSON stays JSON, text stays valid UTF-8.
package redact
