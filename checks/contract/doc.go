// Command contract holds answers of the service against its OpenAPI document.
// The tests of internal/web start it with the document's path; it first says
// whether the document is valid, then reads one exchange a line, as JSON, and
// answers each by one line: a JSON list of what is wrong.
package main
