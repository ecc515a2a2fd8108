// Command countries writes a database of countries by MaxMind's own writer, for
// the tests of the service. It reads networks and what is known of each as one
// JSON object; whole numbers become uint32.
package main
