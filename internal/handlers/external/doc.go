// Package external runs what is outside of the service: programs (command.run) and
// HTTP requests (http.call). A job names an entry of the configuration; the entry
// says everything else.
//
// It is not a shell: no argument, folder, address or header comes from a payload.
//
// Invariants:
//
//   - A type exists only where its list has an entry: nothing is allowed by default.
//   - A program gets the entry's environment only, none of the service's settings.
//   - When the time is over or the job is cancelled, the program ends with all that
//     it has started.
//   - Output and answers are cut to the entry's length before they are stored.
package external
