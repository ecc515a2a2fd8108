package tables

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// column is what the database says about one column.
type column struct{ name, kind, full string }

// columnsOf lists a table's columns by name; empty when there is no such table.
func (s *Tables) columnsOf(ctx context.Context, q Tx, table string) (map[string]column, error) {
	found := map[string]column{}
	err := s.Query(ctx, q, func(r *sql.Rows) error {
		var c column
		if err := r.Scan(&c.name, &c.kind, &c.full); err != nil {
			return err
		}
		c.name = strings.ToLower(c.name)
		found[c.name] = c
		return nil
	}, s.Dialect.Columns(), table)
	if err != nil {
		return nil, fmt.Errorf("reading the columns of %s: %w", table, err)
	}
	return found, nil
}

// IndexesOf lists a table's indexes: name to columns in order.
func (s *Tables) IndexesOf(ctx context.Context, q Tx, table string) (map[string][]string, error) {
	found := map[string][]string{}
	err := s.Query(ctx, q, func(r *sql.Rows) error {
		var index, name sql.NullString
		if err := r.Scan(&index, &name); err != nil {
			return err
		}
		found[index.String] = append(found[index.String], strings.ToLower(name.String))
		return nil
	}, s.Dialect.Indexes(), table)
	if err != nil {
		return nil, fmt.Errorf("reading the indexes of %s: %w", table, err)
	}
	return found, nil
}

// need says which columns are missing.
func need(table string, have map[string]column, want ...string) error {
	var missing []string
	for _, c := range want {
		if _, ok := have[c]; !ok {
			missing = append(missing, c)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("the table %s lacks the columns %s", table, strings.Join(missing, ", "))
}

// momentOf says how a column holds time.
func (s *Tables) momentOf(c column) TimeColumn {
	m := TimeColumn{Name: s.Dialect.Ident(c.name), d: s.Dialect}
	switch {
	case strings.Contains(c.kind, "with time zone"):
		m.Kind = zonedInstant
	case strings.Contains(c.kind, "time"), strings.Contains(c.kind, "date"), s.Dialect.LooseTypes &&
		strings.Contains(c.kind, "text"):
		m.Kind = WallClock
	}
	return m
}

// attemptsLimit is the largest number that an attempts column holds; 0 means
// that it is no concern.
func (s *Tables) attemptsLimit(c column) int {
	if s.Dialect.LooseTypes {
		return 0
	}
	unsigned := strings.Contains(c.full, "unsigned")
	limit := map[string][2]int{"tinyint": {127, 255}, "smallint": {32767, 65535}}[c.kind]
	if unsigned {
		return limit[1]
	}
	return limit[0]
}

// indexOn finds an index whose first columns are the given ones.
func indexOn(indexes map[string][]string, columns ...string) string {
	var names []string
	for name, have := range indexes {
		if len(have) >= len(columns) && slices.Equal(have[:len(columns)], columns) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

var safeName = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)

// checkName refuses a table name that would need more than quotes.
func checkName(name string) error {
	if !safeName.MatchString(name) {
		return fmt.Errorf("the table name %q may have letters, digits and underscores only", name)
	}
	return nil
}

// readTable reads the columns of a table that must be there; missing says what
// to do where it is not.
func (s *Tables) readTable(ctx context.Context, plain, missing string) (map[string]column, error) {
	if err := checkName(plain); err != nil {
		return nil, err
	}
	have, err := s.columnsOf(ctx, s.DB, plain)
	if err == nil && len(have) == 0 {
		err = fmt.Errorf("there is no table %s in the database%s", plain, missing)
	}
	return have, err
}
