package history

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// like is a condition that a text stands in one of the columns, ignoring case.
func (s *Store) like(text string, columns ...string) (string, []any) {
	word := s.tables.Dialect.Choose(database.Variants{MySQL: "LIKE", PostgreSQL: "ILIKE", SQLite: "LIKE"})
	pattern := "%" + strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(text) + "%"
	var parts []string
	var args []any
	for _, c := range columns {
		parts = append(parts, fmt.Sprintf("%s %s ? ESCAPE '!'", c, word))
		args = append(args, pattern)
	}
	return "(" + strings.Join(parts, " OR ") + ")", args
}

// conditions collects what must all hold.
type conditions struct {
	parts []string
	args  []any
}

func (c *conditions) add(part string, args ...any) {
	c.parts, c.args = append(c.parts, part), append(c.args, args...)
}

func (c *conditions) in(column string, words []string) {
	if len(words) > 0 {
		part, args := database.InWords(column, words)
		c.add(part, args...)
	}
}

func (c *conditions) notIn(column string, words []string) {
	if len(words) > 0 {
		part, args := database.InWords(column, words)
		c.add("NOT ("+part+")", args...)
	}
}

func (c conditions) String() string { return cmp.Or(strings.Join(c.parts, " AND "), "1=1") }
