// Command rpm prints the files that an .rpm installs, one a line, and refuses one that runs
// scripts. It reads the header only, so that no program of a distribution is needed.
package main
