// Command typecheck checks the types of all packages and tests of the product for another
// system, from their source. To compile them and what they use takes ten times as long,
// and finds nothing more before a linker runs.
//
// It is no vet and makes no file. Of what we use it reads the declarations alone.
package main
