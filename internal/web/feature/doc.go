// Package feature lists the features of the pages and the API: one package each
// below this folder, with its routes, pages, templates and texts.
//
// It is not the place that fills them with what handlers do: package app gives
// the ports. Features do not import one another.
package feature
