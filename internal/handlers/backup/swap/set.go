package swap

import (
	"fmt"
	"strings"
)

// Prefix begins the names of tables that live only for an exchange.
const Prefix = "cmsjobs_swap_"

// Temporary knows the name of a table that lives only for an exchange.
func Temporary(table string) bool { return strings.HasPrefix(table, Prefix) }

// Set is what one exchange is about. It is small enough for a row of a table.
type Set struct {
	ID string `json:"id"`
	// Tables were loaded beside the live ones.
	Tables []string `json:"tables,omitempty"`
	// Keys are the foreign keys that are there after the exchange, those of kept tables
	// that refer to exchanged ones among them.
	Keys []Key `json:"keys,omitempty"`
	// Checks of MySQL get their names after the exchange.
	Checks []Key `json:"checks,omitempty"`
	// Later are the statements that follow the exchange: views, programs, sequences. Each
	// run of all of them has the same result.
	Later []string `json:"later,omitempty"`
}

// Key is a constraint of a table.
type Key struct {
	Table  string `json:"table"`
	Name   string `json:"name"`
	Now    string `json:"now,omitempty"` // its name until then
	Clause string `json:"clause"`        // as ALTER TABLE … ADD takes it
	// Kept says that the table stays as it is: then a key that cannot be made again is
	// a problem, and no reason to stop.
	Kept bool `json:"kept,omitempty"`
}

// staged is the name of table n, from 1, until the exchange.
func (s *Set) staged(n int) string { return fmt.Sprintf("%s%s_%d", Prefix, s.ID, n) }

// former is the name of the table that table n, from 1, replaced.
func (s *Set) former(n int) string { return fmt.Sprintf("%s%s_%d_old", Prefix, s.ID, n) }

// Staged are the names of the loaded tables until the exchange, by their later names.
func (s *Set) Staged() map[string]string {
	names := make(map[string]string, len(s.Tables))
	for i, name := range s.Tables {
		names[name] = s.staged(i + 1)
	}
	return names
}

// Mark is the table that a transaction makes where the exchange is a transaction.
func (s *Set) Mark() string { return Prefix + s.ID + "_done" }
