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
	statement := map[string]string{
		"mysql":    "SELECT column_name, data_type, column_type FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ?",
		"postgres": "SELECT column_name, data_type, data_type FROM information_schema.columns WHERE table_schema = ANY(current_schemas(false)) AND table_name = ?",
		"sqlite":   "SELECT name, lower(type), lower(type) FROM pragma_table_info(?)",
	}[s.Dialect.Name]
	found := map[string]column{}
	err := s.Query(ctx, q, func(r *sql.Rows) error {
		var c column
		if err := r.Scan(&c.name, &c.kind, &c.full); err != nil {
			return err
		}
		c.name = strings.ToLower(c.name)
		found[c.name] = c
		return nil
	}, statement, table)
	if err != nil {
		return nil, fmt.Errorf("reading the columns of %s: %w", table, err)
	}
	return found, nil
}

// IndexesOf lists a table's indexes: name to columns in order.
func (s *Tables) IndexesOf(ctx context.Context, q Tx, table string) (map[string][]string, error) {
	statement := map[string]string{
		"mysql": "SELECT index_name, column_name FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = ? ORDER BY index_name, seq_in_index",
		"postgres": `SELECT i.relname, a.attname FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
			CROSS JOIN LATERAL unnest(CAST(x.indkey AS int2[])) WITH ORDINALITY k(attnum, n)
			JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.attnum
			WHERE x.indrelid = to_regclass(?) AND x.indpred IS NULL ORDER BY i.relname, k.n`,
		"sqlite": "SELECT l.name, i.name FROM pragma_index_list(?) l JOIN pragma_index_info(l.name) i WHERE l.partial = 0 ORDER BY l.name, i.seqno",
	}[s.Dialect.Name]
	found := map[string][]string{}
	err := s.Query(ctx, q, func(r *sql.Rows) error {
		var index, name sql.NullString
		if err := r.Scan(&index, &name); err != nil {
			return err
		}
		found[index.String] = append(found[index.String], strings.ToLower(name.String))
		return nil
	}, statement, table)
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
	case strings.Contains(c.kind, "time"), strings.Contains(c.kind, "date"), s.Dialect.Name == "sqlite" && strings.Contains(c.kind, "text"):
		m.Kind = WallClock
	}
	return m
}

// attemptsLimit is the largest number that an attempts column holds; 0 means
// that it is no concern.
func (s *Tables) attemptsLimit(c column) int {
	if s.Dialect.Name == "sqlite" {
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
