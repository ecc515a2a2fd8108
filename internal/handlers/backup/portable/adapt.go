package portable

import (
	"regexp"
	"slices"
	"strings"
)

// collation is the server's own for one of a dump: itself, the chosen one, or the
// nearest by character set and by what it tells apart.
func (t Target) collation(name string, chosen map[string]string) (string, bool) {
	if to := chosen[name]; to != "" {
		return to, t.collations[strings.ToLower(to)]
	}
	if t.collations[strings.ToLower(name)] || name == "binary" {
		return name, true
	}
	charset, kind, _ := strings.Cut(name, "_")
	sets := []string{charset}
	switch charset { // two names of one set
	case "utf8":
		sets = append(sets, "utf8mb3")
	case "utf8mb3":
		sets = append(sets, "utf8")
	}
	for _, set := range sets {
		for _, end := range append([]string{kind}, alike(kind)...) {
			if t.collations[set+"_"+end] {
				return set + "_" + end, true
			}
		}
	}
	return "", false
}

// alike lists endings of collations that tell nearly the same texts apart, the nearest
// first. Those that count spaces at the end come before those that ignore them where
// the dump's counts them: MySQL's 0900 and MariaDB's nopad. Otherwise a unique key
// would find 'a' and 'a ' equal.
func alike(kind string) []string {
	var counting, ignoring []string
	switch {
	case strings.HasSuffix(kind, "bin"):
		counting, ignoring = []string{"0900_bin", "nopad_bin"}, []string{"bin"}
	case strings.HasSuffix(kind, "_cs"):
		counting, ignoring = []string{"0900_as_cs", "uca1400_nopad_as_cs", "0900_bin", "nopad_bin"},
			[]string{"0900_as_cs", "uca1400_as_cs", "bin"}
	case strings.HasPrefix(kind, "general"):
		counting, ignoring = []string{"general_nopad_ci"}, []string{"general_ci", "unicode_ci"}
	default:
		counting = []string{"0900_ai_ci", "uca1400_nopad_ai_ci", "unicode_520_nopad_ci", "unicode_nopad_ci"}
		ignoring = []string{"uca1400_ai_ci", "0900_ai_ci", "unicode_520_ci", "unicode_ci", "general_ci"}
	}
	if strings.HasSuffix(kind, "as_ci") {
		counting = append([]string{"0900_as_ci", "uca1400_nopad_as_ci"}, counting...)
		ignoring = append([]string{"uca1400_as_ci", "0900_as_ci"}, ignoring...)
	}
	if strings.Contains(kind, "0900") || strings.Contains(kind, "nopad") {
		return append(counting, ignoring...)
	}
	return ignoring
}

// forgotten are SQL modes that a server refuses to set: those of another kind, and
// what MySQL 8 has removed.
func (t Target) forgotten(mode string) bool {
	onlyMariaDB := []string{"EMPTY_STRING_IS_NULL", "SIMULTANEOUS_ASSIGNMENT", "TIME_ROUND_FRACTIONAL"}
	removed := []string{"NO_AUTO_CREATE_USER", "DB2", "MAXDB", "MSSQL", "MYSQL323", "MYSQL40", "ORACLE", "POSTGRESQL",
		"NO_FIELD_OPTIONS", "NO_KEY_OPTIONS", "NO_TABLE_OPTIONS"}
	if t.mariaDB() {
		return mode == "TIME_TRUNCATE_FRACTIONAL"
	}
	return slices.Contains(onlyMariaDB, mode) || t.atLeast(8, 0) && slices.Contains(removed, mode)
}

var (
	setMode      = regexp.MustCompile(`^SET sql_mode = '([A-Z0-9_,]*)'$`)
	setCollation = regexp.MustCompile(`^SET collation_connection = (\w+)$`)
	// parts finds what a statement says outside of texts and names: those come first.
	parts = regexp.MustCompile("(?i)'(?:[^'\\\\]|''|\\\\.)*'|`(?:[^`]|``)*`|\\bCOLLATE[ " +
		"=]\\s*\\w+|\\bENGINE=\\w+|\\b(?:PAGE_CHECKSUM|TRANSACTIONAL)=\\d")
)

// Adapt returns what writes a statement of a dump for this server; nil where it can
// stay as it is. chosen names collations that are to become others.
func (t Target) Adapt(n *Needs, chosen map[string]string) func(statement []byte) []byte {
	if len(chosen) == 0 && (n == nil || !n.Foreign(t)) {
		return nil
	}
	return func(statement []byte) []byte {
		if m := setMode.FindSubmatch(statement); m != nil {
			modes := slices.DeleteFunc(strings.Split(string(m[1]), ","), t.forgotten)
			return []byte("SET sql_mode = '" + strings.Join(modes, ",") + "'")
		}
		if m := setCollation.FindSubmatch(statement); m != nil {
			if to, known := t.collation(string(m[1]), chosen); known {
				return []byte("SET collation_connection = " + to)
			}
			return statement
		}
		return parts.ReplaceAllFunc(statement, func(part []byte) []byte { return t.part(part, chosen) })
	}
}

func (t Target) part(part []byte, chosen map[string]string) []byte {
	text := string(part)
	upper := strings.ToUpper(text)
	switch {
	case text[0] == '\'' || text[0] == '`':
	case strings.HasPrefix(upper, "COLLATE"):
		name := strings.TrimLeft(text[len("COLLATE"):], " =")
		if to, known := t.collation(strings.ToLower(name), chosen); known {
			return []byte(strings.TrimSuffix(text, name) + to)
		}
	case strings.HasPrefix(upper, "ENGINE="):
		if !t.engines[strings.ToLower(text[len("ENGINE="):])] {
			return []byte("ENGINE=InnoDB")
		}
	case !t.mariaDB(): // options of Aria
		return nil
	}
	return part
}
