//go:build linux

// Command bench renders one picture again and again and says what a rendering
// costs: CPU milliseconds (user and system) and the process's peak memory. Its
// output has the form of sharp.mjs beside it, so that run.sh can set the two
// next to each other.
package main
