// Package chart draws bars as SVG for the admin pages.
//
// It is not a library for drawings: there is one kind of plot, without
// JavaScript. All texts are escaped.
package chart
