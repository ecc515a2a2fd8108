package swap

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
)

// Staging writes the statements of a dump for tables beside the live ones, and keeps
// those for later that can only follow the exchange.
type Staging struct {
	Set     Set
	mariaDB bool
	number  map[string]int // of staged tables, from 1
	direct  map[string]bool
	dropped []byte // DROP TABLE of a table whose CREATE TABLE has not come yet
}

// NewStaging begins the set of an exchange. Its id is short and of lower-case letters
// and digits.
func NewStaging(id string, mariaDB bool) *Staging {
	return &Staging{Set: Set{ID: id}, mariaDB: mariaDB, number: map[string]int{}, direct: map[string]bool{}}
}

// tableStatement finds the table of a statement as mysqldump and we write it.
var tableStatement = regexp.MustCompile("^(?:/\\*!\\d+ )?(DROP TABLE IF EXISTS|CREATE TABLE|INSERT INTO|REPLACE " +
	"INTO|ALTER TABLE) (`(?:[^`]|``)*`)")

// headLength is as far as the table's name is looked for.
const headLength = 512

// Rewrite returns what is run now in the place of a statement; nil is nothing.
func (s *Staging) Rewrite(part dump.Part, statement []byte) []byte {
	if part == dump.Extra {
		s.later(statement)
		return nil
	}
	at := tableStatement.FindSubmatchIndex(statement[:min(len(statement), headLength)])
	if at == nil {
		return s.other(statement)
	}
	verb, name := string(statement[at[2]:at[3]]), unquoted(string(statement[at[4]:at[5]]))
	switch verb {
	case "DROP TABLE IF EXISTS":
		s.flush()
		s.dropped = bytes.Clone(statement)
		return nil
	case "CREATE TABLE":
		if !holdsRows(statement) {
			s.direct[name] = true
			s.later(statement)
			return nil
		}
		s.dropped = nil
		statement = s.create(name, statement)
	}
	n, staged := s.number[name]
	if !staged {
		s.later(statement)
		return nil
	}
	return replaced(statement, at[4], at[5], quoted(s.Set.staged(n)))
}

// setStatement knows SET as dumps write it, also behind what mariadb-dump begins with:
// the mark of a sandbox, and lines of comments.
var setStatement = regexp.MustCompile(`^(?:/\*M!\d+\\- [^*]*\*/\s*|-- .*\n\s*|--\n\s*)*(?:/\*M?!\d+ )?SET `)

// other handles what belongs to no table.
func (s *Staging) other(statement []byte) []byte {
	switch head := string(statement[:min(len(statement), 32)]); {
	case strings.HasPrefix(head, "SET @cmsjobs_"): // parts of one row
		return statement
	case setStatement.Match(statement): // a DROP TABLE still waits for its CREATE TABLE
		s.Set.Later = append(s.Set.Later, string(statement))
		return statement
	case strings.HasPrefix(head, "COMMIT"):
		return statement
	case strings.HasPrefix(head, "CREATE SEQUENCE "):
		s.later(statement)
		// A default of a table may use it.
		return append([]byte("CREATE SEQUENCE IF NOT EXISTS "), statement[len("CREATE SEQUENCE "):]...)
	case strings.HasPrefix(head, "LOCK TABLES"), strings.HasPrefix(head, "UNLOCK TABLES"):
		return nil
	}
	s.later(statement)
	return nil
}

func (s *Staging) later(statement []byte) {
	s.flush()
	s.Set.Later = append(s.Set.Later, string(statement))
}

func (s *Staging) flush() {
	if s.dropped != nil {
		s.Set.Later = append(s.Set.Later, string(s.dropped))
		s.dropped = nil
	}
}

// Close ends the dump.
func (s *Staging) Close() { s.flush() }

var (
	foreignKey = regexp.MustCompile("^  CONSTRAINT (`(?:[^`]|``)*`) FOREIGN KEY .*?,?$")
	check      = regexp.MustCompile("^  CONSTRAINT (`(?:[^`]|``)*`) (CHECK \\(.*?),?$")
)

// create takes a new table into the set, and from its statement what a server knows
// once in a database: the names of foreign keys and, on MySQL, of checks.
func (s *Staging) create(name string, statement []byte) []byte {
	n, again := s.number[name]
	if !again {
		s.Set.Tables = append(s.Set.Tables, name)
		n = len(s.Set.Tables)
		s.number[name] = n
	}
	lines := strings.Split(string(statement), "\n")
	kept := lines[:0]
	for _, line := range lines {
		if m := foreignKey.FindStringSubmatch(line); m != nil {
			s.Set.Keys = append(s.Set.Keys, Key{Table: name, Name: unquoted(m[1]), Clause: clause(line)})
			continue
		}
		if m := check.FindStringSubmatch(line); m != nil && !s.mariaDB {
			line = strings.Replace(line, m[1], quoted(s.Set.staged(n)+s.checkEnding(name, unquoted(m[1]), line)), 1)
		}
		kept = append(kept, line)
	}
	for i := range kept[:len(kept)-1] { // the last line before the closing one has no comma
		if strings.HasPrefix(kept[i+1], ")") && strings.HasPrefix(kept[i], "  ") {
			kept[i] = strings.TrimSuffix(kept[i], ",")
		}
	}
	return []byte(strings.Join(kept, "\n"))
}

// checkEnding is how the name of a check ends until the exchange. A name of that form
// changes with the name of the table.
func (s *Staging) checkEnding(table, name, line string) string {
	if rest, is := strings.CutPrefix(name, table); is && ownEnding.MatchString(rest) {
		return rest
	}
	ending := fmt.Sprintf("_chk_%d", firstCheck+len(s.Set.Checks))
	s.Set.Checks = append(s.Set.Checks, Key{Table: table, Name: name, Now: table + ending, Clause: clause(line)})
	return ending
}

// firstCheck is larger than the number of a check that the server named.
const firstCheck = 100_000

var ownEnding = regexp.MustCompile(`^_chk_[1-9]\d*$`)

// clause is a line of CREATE TABLE as ALTER TABLE … ADD takes it.
func clause(line string) string { return strings.TrimSuffix(strings.TrimSpace(line), ",") }

var engineOption = regexp.MustCompile(`(?i)\n\).*\bENGINE=(\w+)`)

// holdsRows is false for tables that only refer to others, or to other servers.
func holdsRows(create []byte) bool {
	m := engineOption.FindSubmatch(create)
	return m == nil || dump.HoldsRows(string(m[1]))
}

func replaced(statement []byte, from, to int, by string) []byte {
	out := make([]byte, 0, len(statement)+len(by)-(to-from))
	out = append(out, statement[:from]...)
	out = append(out, by...)
	return append(out, statement[to:]...)
}

func quoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

func unquoted(name string) string { return strings.ReplaceAll(strings.Trim(name, "`"), "``", "`") }
