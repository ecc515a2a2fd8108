// Command mutants removes each guard of the promises on docs/reliability.md in
// turn, in a copy of its file that only the compiler sees, and runs the test that
// is named for it. A guard is held when its test fails by an assertion.
//
// It changes no file of the project but the page that -page names. A guard is
// one entry of guards; TestEveryGuardIsThere keeps them in step with the code.
package main
