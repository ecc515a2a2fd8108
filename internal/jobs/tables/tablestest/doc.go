// Package tablestest gives the tests of the queue and of the history the tables
// of a CMS in all shapes that they meet: each database server, both layouts,
// times as numbers and as wall clocks, with and without the offered index.
//
// It is neither the queue nor the history: each package's own test opens them on
// a Fixture.
package tablestest
