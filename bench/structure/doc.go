// Command structure prints the figures of the code's structure: sizes of files
// and functions, complexity, long lines, documented names, and for each package
// its files, the arrows between them and how many of these run backwards.
//
// An arrow leads from a file to each other file of its package whose
// declarations it uses. The files of a package are put in an order in which as
// few arrows as possible run backwards (the greedy method of Eades, Lin and
// Smyth, which is the same on every run); an arrow that still does is counted as
// upward. A package without upward arrows can be read from its first file to
// its last.
//
// It judges nothing: docs/architecture.md says what is aimed at, the linter
// holds the limits of lines and functions. It reads source only and runs
// nothing of the project.
package main
