package dump

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// catalog is what a database holds, in the order of names.
type catalog struct {
	tables    []tableInfo
	views     []viewInfo
	sequences []string
	partial   bool // only some tables were asked for
}

type tableInfo struct {
	name, engine string
	columns      []column // those that are written
	key          []int    // of columns: the primary key, where rows can be found by it
	byKey        bool     // rows are read in the order of the key
}

type viewInfo struct {
	name    string
	columns []string
}

// column is one column that a dump must write: generated ones compute
// themselves.
type column struct {
	name  string
	form  form
	float bool
	long  bool // its values may be long
	json  bool // MySQL's own type; MariaDB's JSON is text
}

// form is how the values of a column are written.
type form int

const (
	quoted form = iota // text, times, JSON, and types that we do not know
	number             // unquoted, as the server prints it
	binary             // hexadecimal
)

var forms = map[string]form{
	"tinyint": number, "smallint": number, "mediumint": number, "int": number, "bigint": number,
	"decimal": number, "float": number, "double": number, "year": number,
	"bit": binary, "binary": binary, "varbinary": binary, "tinyblob": binary, "blob": binary, "mediumblob": binary,
	"longblob": binary,
	"geometry": binary, "point": binary, "linestring": binary, "polygon": binary, "multipoint": binary,
	"multilinestring": binary, "multipolygon": binary, "geometrycollection": binary, "geomcollection": binary,
	"vector": binary,
}

// longTypes can hold long values.
var longTypes = map[string]bool{"mediumtext": true, "longtext": true, "mediumblob": true, "longblob": true}

// catalog looks up tables, columns, views and sequences.
func (s *session) catalog(ctx context.Context) (catalog, error) {
	var c catalog
	schema := quoteText(s.database)
	columns, err := s.columns(ctx, schema)
	if err != nil {
		return c, err
	}
	keys, err := s.keys(ctx, schema)
	if err != nil {
		return c, err
	}
	rows, err := s.texts(ctx, "SELECT TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE "+
		"TABLE_SCHEMA = "+schema+" ORDER BY TABLE_NAME")
	if err != nil {
		return c, fmt.Errorf("listing the tables: %w", err)
	}
	for _, r := range rows {
		switch name := r[0]; r[1] {
		case "SEQUENCE":
			c.sequences = append(c.sequences, name)
		case "VIEW", "SYSTEM VIEW":
			v := viewInfo{name: name}
			for _, col := range columns[name] {
				v.columns = append(v.columns, col.name)
			}
			c.views = append(c.views, v)
		default: // BASE TABLE, SYSTEM VERSIONED
			c.tables = append(c.tables, tableInfo{name: name, engine: r[2], columns: columns[name],
				key: keyOf(columns[name], keys[name])})
		}
	}
	return c, nil
}

func (s *session) columns(ctx context.Context, schema string) (map[string][]column, error) {
	rows, err := s.texts(ctx, "SELECT TABLE_NAME, COLUMN_NAME, LOWER(DATA_TYPE), EXTRA, "+
		"COALESCE(GENERATION_EXPRESSION, '') FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = "+
		schema+" ORDER BY TABLE_NAME, ORDINAL_POSITION")
	if err != nil {
		return nil, fmt.Errorf("listing the columns: %w", err)
	}
	all := map[string][]column{}
	for _, r := range rows {
		if generated(r[3], r[4]) {
			continue
		}
		all[r[0]] = append(all[r[0]], column{name: r[1], form: forms[r[2]], float: r[2] == "float",
			long: longTypes[r[2]], json: r[2] == "json"})
	}
	return all, nil
}

// keys are the columns of every table's primary key.
func (s *session) keys(ctx context.Context, schema string) (map[string][]string, error) {
	rows, err := s.texts(ctx,
		"SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = "+schema+
			" AND INDEX_NAME = 'PRIMARY' ORDER BY TABLE_NAME, SEQ_IN_INDEX")
	if err != nil {
		return nil, fmt.Errorf("listing the keys: %w", err)
	}
	keys := map[string][]string{}
	for _, r := range rows {
		keys[r[0]] = append(keys[r[0]], r[1])
	}
	return keys, nil
}

// keyOf finds a key among the columns that are written; nil where a row cannot
// be found by it: a part of it is computed, or long, or a float that equals no
// literal.
func keyOf(columns []column, key []string) (at []int) {
	for _, name := range key {
		i := slices.IndexFunc(columns, func(c column) bool { return c.name == name && !c.long && !c.float })
		if i < 0 {
			return nil
		}
		at = append(at, i)
	}
	return at
}

// generated knows a computed column. MySQL 8 says DEFAULT_GENERATED of one
// that only has an expression as its default.
func generated(extra, expression string) bool {
	extra = strings.ReplaceAll(strings.ToUpper(extra), "DEFAULT_GENERATED", "")
	return expression != "" || strings.Contains(extra, "GENERATED")
}

// only leaves out what the options leave out.
func (c catalog) only(o Options) catalog {
	out := func(name string) bool {
		return len(o.Tables) > 0 && !slices.Contains(o.Tables, name) || o.Exclude != nil && o.Exclude(name)
	}
	c.partial = len(o.Tables) > 0
	c.tables = slices.DeleteFunc(slices.Clone(c.tables), func(t tableInfo) bool { return out(t.name) })
	for i := range c.tables {
		t := &c.tables[i]
		t.byKey = o.CutByKey && len(t.key) > 0 && strings.EqualFold(t.engine, "InnoDB")
	}
	c.views = slices.DeleteFunc(slices.Clone(c.views), func(v viewInfo) bool { return out(v.name) })
	c.sequences = slices.DeleteFunc(slices.Clone(c.sequences), out)
	return c
}
