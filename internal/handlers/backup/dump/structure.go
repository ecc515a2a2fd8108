package dump

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// structureVersion begins Summary.Schema where it is a hash over Objects.
const structureVersion = "structure-1:"

// hashOf is the same for equal structures. It sorts them.
func hashOf(objects []Object) string {
	slices.SortFunc(objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	data, _ := json.Marshal(objects) // strings always encode, maps in the order of their keys
	sum := sha256.Sum256(data)
	return structureVersion + hex.EncodeToString(sum[:])
}

// catalogueView is one view of information_schema that says something of tables.
type catalogueView struct {
	from string // the view, and its condition: %s is the schema, quoted
	of   string // the view whose optional columns are asked for
	// columns: the table's name, the fact's name, then what is stated. Those in
	// optional exist in some servers only; elsewhere they are "".
	columns  []string
	optional []string
	// label makes the fact's name, words say what the values mean.
	label func(r []string) string
	words []string
}

// catalogueViews are read for every dump. Rows of one fact follow each other.
var catalogueViews = []catalogueView{
	{"TABLES WHERE TABLE_SCHEMA = %s ORDER BY TABLE_NAME", "TABLES", []string{"TABLE_NAME", "''", "TABLE_TYPE",
		"ENGINE", "TABLE_COLLATION", "LOWER(CREATE_OPTIONS)", "TABLE_COMMENT"}, nil,
		func([]string) string { return "options" }, []string{"", "engine", "collation", "", "comment"}},
	{"COLUMNS WHERE TABLE_SCHEMA = %s ORDER BY TABLE_NAME, ORDINAL_POSITION", "COLUMNS",
		[]string{"TABLE_NAME", "COLUMN_NAME", "COLUMN_TYPE", "COLLATION_NAME",
			"IF(IS_NULLABLE = 'YES', 'NULL', 'NOT NULL')", "CONCAT('default ', COLUMN_DEFAULT)", "LOWER(EXTRA)",
			"GENERATION_EXPRESSION", "COLUMN_COMMENT"}, []string{"SRS_ID"},
		func(r []string) string { return "column " + r[1] }, []string{"", "collation", "", "", "", "as", "comment",
			"srid"}},
	{"STATISTICS WHERE TABLE_SCHEMA = %s ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX", "STATISTICS",
		[]string{"TABLE_NAME", "INDEX_NAME", "IF(NON_UNIQUE, '', 'unique')", "INDEX_TYPE",
			"COLUMN_NAME", "CONCAT('(', SUB_PART, ')')", "IF(COLLATION = 'D', 'desc', '')", "INDEX_COMMENT"},
		[]string{"EXPRESSION", "IS_VISIBLE", "IGNORED"},
		func(r []string) string { return "index " + r[1] }, []string{"", "", "", "", "", "comment", "expression",
			"visible", "ignored"}},
	{"KEY_COLUMN_USAGE k JOIN information_schema.REFERENTIAL_CONSTRAINTS r ON r.CONSTRAINT_SCHEMA = " +
		"k.CONSTRAINT_SCHEMA AND r.CONSTRAINT_NAME = k.CONSTRAINT_NAME AND r.TABLE_NAME = k.TABLE_NAME" +
		" WHERE k.TABLE_SCHEMA = %s AND k.REFERENCED_TABLE_NAME IS NOT NULL ORDER BY k.TABLE_NAME, " +
		"k.CONSTRAINT_NAME, k.ORDINAL_POSITION", "",
		[]string{"k.TABLE_NAME", "k.CONSTRAINT_NAME", "k.COLUMN_NAME", "IF(k.REFERENCED_TABLE_SCHEMA = " +
			"k.TABLE_SCHEMA, '', k.REFERENCED_TABLE_SCHEMA)", "k.REFERENCED_TABLE_NAME", "k.REFERENCED_COLUMN_NAME",
			"r.UPDATE_RULE", "r.DELETE_RULE"}, nil,
		func(r []string) string { return "foreign key " + r[1] }, []string{"", "of", "to", "", "on update",
			"on delete"}},
	{"PARTITIONS WHERE TABLE_SCHEMA = %s AND PARTITION_NAME IS NOT NULL ORDER BY TABLE_NAME, " +
		"PARTITION_ORDINAL_POSITION, SUBPARTITION_ORDINAL_POSITION", "PARTITIONS",
		[]string{"TABLE_NAME", "CONCAT_WS('/', PARTITION_NAME, SUBPARTITION_NAME)", "PARTITION_ORDINAL_POSITION",
			"PARTITION_METHOD", "PARTITION_EXPRESSION", "PARTITION_DESCRIPTION",
			"SUBPARTITION_METHOD", "SUBPARTITION_EXPRESSION", "PARTITION_COMMENT"}, nil,
		func(r []string) string { return "partition " + r[1] }, []string{"", "by", "", "values", "by", "", "comment"}},
}

// structure reads how the tables of the schema are made.
func (s *session) structure(ctx context.Context) (map[string]map[string]string, error) {
	known, err := s.texts(ctx, "SELECT CONCAT(TABLE_NAME, '.', COLUMN_NAME) FROM information_schema.COLUMNS WHERE "+
		"TABLE_SCHEMA = 'information_schema'"+
		" AND TABLE_NAME IN ('COLUMNS', 'STATISTICS', 'CHECK_CONSTRAINTS', 'TABLE_CONSTRAINTS')")
	if err != nil {
		return nil, fmt.Errorf("looking at what the catalogue knows: %w", err)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(known, func(r []string) bool { return strings.EqualFold(r[0], name) })
	}
	tables := map[string]map[string]string{}
	for _, v := range append(slices.Clone(catalogueViews), checks(has)...) {
		if err := s.readFacts(ctx, v, has, tables); err != nil {
			return nil, fmt.Errorf("reading how the tables are made: %w", err)
		}
	}
	return tables, nil
}

// checks asks for CHECK constraints as the server keeps them: MariaDB names their
// table, MySQL since 8.0.16 whether they are enforced, MySQL 5.7 has none.
func checks(has func(string) bool) []catalogueView {
	v := catalogueView{label: func(r []string) string { return "check " + r[1] }, words: []string{"", "enforced"}}
	switch {
	case has("CHECK_CONSTRAINTS.TABLE_NAME"):
		v.from = "CHECK_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = %s ORDER BY TABLE_NAME, CONSTRAINT_NAME"
		v.columns = []string{"TABLE_NAME", "CONSTRAINT_NAME", "CHECK_CLAUSE", "''"}
	case has("CHECK_CONSTRAINTS.CHECK_CLAUSE"):
		v.from = "CHECK_CONSTRAINTS c JOIN information_schema.TABLE_CONSTRAINTS t ON t.CONSTRAINT_SCHEMA = " +
			"c.CONSTRAINT_SCHEMA AND t.CONSTRAINT_NAME = c.CONSTRAINT_NAME" +
			" WHERE c.CONSTRAINT_SCHEMA = %s AND t.CONSTRAINT_TYPE = 'CHECK' ORDER BY t.TABLE_NAME, c.CONSTRAINT_NAME"
		v.columns = []string{"t.TABLE_NAME", "c.CONSTRAINT_NAME", "c.CHECK_CLAUSE", "t.ENFORCED"}
	default:
		return nil
	}
	return []catalogueView{v}
}

func (s *session) readFacts(ctx context.Context, v catalogueView, has func(string) bool,
	tables map[string]map[string]string) error {
	columns := slices.Clone(v.columns)
	for _, name := range v.optional {
		if !has(v.of + "." + name) {
			name = "''"
		}
		columns = append(columns, name)
	}
	rows, err := s.texts(ctx, "SELECT "+strings.Join(columns, ", ")+" FROM information_schema."+
		fmt.Sprintf(v.from, quoteText(s.database)))
	if err != nil {
		return err
	}
	for _, r := range rows {
		facts := tables[r[0]]
		if facts == nil {
			facts = map[string]string{}
			tables[r[0]] = facts
		}
		var how []string
		for i, value := range r[2:] {
			if value != "" {
				how = append(how, strings.TrimSpace(v.words[i]+" "+s.unqualify(value)))
			}
		}
		label := v.label(r)
		if before, again := facts[label]; again { // the next column of an index or a key
			how = append([]string{before + ","}, how...)
		}
		facts[label] = pageChecksum.ReplaceAllString(strings.Join(how, " "), "")
		if strings.HasPrefix(label, "column ") {
			facts["columns"] = strings.TrimPrefix(facts["columns"]+", "+r[1], ", ")
		}
	}
	return nil
}

// pageChecksum is what Aria states of itself once a table was restored.
var pageChecksum = regexp.MustCompile(` page_checksum=\d`)

// onlyInText finds what of a table stands in SHOW CREATE TABLE alone.
var onlyInText = regexp.MustCompile("(?i)\\bWITH PARSER `?\\w+`?|\\bWITHOUT OVERLAPS|\\bPERIOD FOR " +
	"[^,\n]+|\\bWITH(?:OUT)? SYSTEM VERSIONING|\\bUSING HASH")

// addTable takes a table's structure into the summary.
func (d *dumper) addTable(name, create string) {
	facts := d.structures[name]
	if facts == nil { // made since the catalogue was read
		facts = map[string]string{}
	}
	for _, line := range strings.Split(create, "\n") {
		for _, clause := range onlyInText.FindAllString(literals.ReplaceAllString(line, "''"), -1) {
			facts["also"] = strings.TrimPrefix(facts["also"]+", "+strings.TrimSpace(names.FindString(line)+" "+clause),
				", ")
		}
	}
	d.summary.Objects = append(d.summary.Objects, Object{Kind: "table", Name: name, Facts: facts})
}

var (
	literals = regexp.MustCompile(`'(?:[^'\\]|''|\\.)*'`)
	names    = regexp.MustCompile("`(?:[^`]|``)*`")
)

// addText takes what is stated as text only: a view, a sequence, a stored program.
func (d *dumper) addText(kind, name, create, sqlMode, collation string) {
	create = Definer.ReplaceAllString(hideDefiner(d.unqualify(create)), "")
	facts := map[string]string{"text": strings.Join(strings.Fields(create), " ")}
	// What neither changes a body nor is known to every server is no difference.
	for fact, how := range map[string]string{"sql_mode": withoutAccounts(sqlMode), "collation": collation} {
		if how != "" {
			facts[fact] = how
		}
	}
	d.summary.Objects = append(d.summary.Objects, Object{Kind: strings.ToLower(kind), Name: name, Facts: facts})
}

// withoutAccounts leaves out NO_AUTO_CREATE_USER, MariaDB's and MySQL 5.7's default,
// which says nothing of a body and which MySQL 8 refuses to set.
func withoutAccounts(modes string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(modes, ","), func(m string) bool {
		return m == "NO_AUTO_CREATE_USER"
	}), ",")
}
