// Package cmsjobs holds no code: the program is in cmd/cmsjobs, the client in
// client. Its tests look at the repository as a whole: which package imports which,
// that what the documents say works, that what is deployed fits, and whose
// licences it carries.
package cmsjobs
