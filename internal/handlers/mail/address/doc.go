// Package address reads the addresses that mail is sent to, and says what must not be in a header line.
package address
