// Package manual turns the documents of docs/ into chapters of HTML, and searches
// them. It serves nothing.
//
// Invariants:
//
//   - Raw HTML of a document is not passed on, and a link with a scheme that runs
//     code is removed.
//   - A link between documents leads to a chapter and its anchor. A link into the
//     source, which the program does not have, becomes the path as text.
//   - A search reads memory only, and its costs are bounded by the manual's size.
package manual
