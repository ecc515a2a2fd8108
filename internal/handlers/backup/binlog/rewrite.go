package binlog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// statement is the text of a statement of the log, taken apart as far as it must be.
type statement struct {
	words []string // the first ones, in capitals
	// text is the statement with the name of the new database in the place of the old one.
	text []byte
	// ours says that it named the old database.
	ours bool
	// other is a database of the server that it names besides; "" for none.
	other string
	// elsewhere says that what it changes is in that database.
	elsewhere bool
}

// rewriter puts one database's name in the place of another's.
type rewriter struct {
	from, to string
	// others says whether a name is that of another database of the server.
	others func(name string) bool
}

// The bits of sql_mode that change how a text is read.
const (
	ansiQuotes         = 1 << 2
	noBackslashEscapes = 1 << 20
)

// maxWords is how many words are kept of a statement's begin.
const maxWords = 12

var errTorn = errors.New("a quoted text or a comment in it does not end")

// rewrite reads a statement token by token: names in texts and comments stay. What
// follows a database's name is a dot, or the name stands behind DATABASE or SCHEMA.
func (r rewriter) rewrite(query []byte, mode uint64) (s statement, err error) {
	l := lexer{b: query, mode: mode}
	var pending *token  // a name that may be a database's
	last, words := 0, 0 // words before the last name
	afterDot, afterDatabase := false, false
	replace := func(t token) {
		s.text = append(append(s.text, query[last:t.start]...), quotedName(r.to)...)
		last, s.ours = t.end, true
	}
	for {
		t, err := l.next()
		if err != nil {
			return s, err
		}
		if t.kind == dotToken && pending != nil {
			switch {
			case strings.EqualFold(pending.name, r.from):
				replace(*pending)
			case r.others(pending.name):
				s.elsewhere = s.elsewhere || s.other == "" && !s.ours && changes(s.words[:words])
				s.other = pending.name
			}
		}
		pending = nil
		if t.kind == nameToken {
			if words = len(s.words); t.plain && words < maxWords {
				s.words = append(s.words, strings.ToUpper(t.name))
			}
			switch {
			case afterDatabase && strings.EqualFold(t.name, r.from):
				replace(t)
			case !afterDot:
				pending = &token{t.kind, t.start, t.end, t.name, t.plain}
			}
			word := strings.ToUpper(t.name)
			afterDatabase = t.plain && (word == "DATABASE" || word == "SCHEMA" ||
				afterDatabase && (word == "IF" || word == "NOT" || word == "EXISTS"))
		} else {
			afterDatabase = false
		}
		afterDot = t.kind == dotToken
		if t.kind == endToken {
			s.text = append(s.text, query[last:]...)
			return s, nil
		}
	}
}

// changes says whether the next name of a statement is that of the table that it
// changes. One that may change several tables is none of those.
func changes(words []string) bool {
	text := strings.Join(words, " ")
	for _, begin := range []string{"INSERT INTO", "INSERT IGNORE INTO", "REPLACE INTO", "DELETE FROM", "TRUNCATE TABLE",
		"TRUNCATE", "CREATE TABLE", "ALTER TABLE"} {
		if text == begin {
			return true
		}
	}
	return false
}

func quotedName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

type tokenKind int

const (
	endToken tokenKind = iota
	nameToken
	dotToken
	otherToken
)

type token struct {
	kind       tokenKind
	start, end int
	name       string
	plain      bool // not quoted
}

// lexer reads the tokens of a statement of MySQL or MariaDB. What stands in comments
// that servers execute (/*! … */) is read too.
type lexer struct {
	b    []byte
	at   int
	mode uint64
}

func isName(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func (l *lexer) next() (token, error) {
	if err := l.skip(); err != nil {
		return token{}, err
	}
	start := l.at
	if start >= len(l.b) {
		return token{kind: endToken, start: start, end: start}, nil
	}
	c := l.b[start]
	switch {
	case c == '`' || c == '"' && l.mode&ansiQuotes != 0:
		name, err := l.quoted(c, false)
		return token{nameToken, start, l.at, name, false}, err
	case c == '\'' || c == '"':
		_, err := l.quoted(c, l.mode&noBackslashEscapes == 0)
		return token{kind: otherToken, start: start, end: l.at}, err
	case c == '.' && start+1 < len(l.b) && l.b[start+1] >= '0' && l.b[start+1] <= '9' && !l.afterName(start):
		l.at++
		return token{kind: otherToken, start: start, end: l.at}, nil
	case c == '.':
		l.at++
		return token{kind: dotToken, start: start, end: l.at}, nil
	case isName(c):
		for l.at < len(l.b) && isName(l.b[l.at]) {
			l.at++
		}
		return token{nameToken, start, l.at, string(l.b[start:l.at]), true}, nil
	}
	l.at++
	return token{kind: otherToken, start: start, end: l.at}, nil
}

// afterName says whether a name ends directly before a place.
func (l *lexer) afterName(at int) bool {
	return at > 0 && (isName(l.b[at-1]) || l.b[at-1] == '`' || l.b[at-1] == '"')
}

// quoted reads to the end of a quoted text or name.
func (l *lexer) quoted(quote byte, escapes bool) (string, error) {
	var name []byte
	for l.at++; l.at < len(l.b); l.at++ {
		switch c := l.b[l.at]; {
		case c == '\\' && escapes:
			l.at++
		case c == quote && l.at+1 < len(l.b) && l.b[l.at+1] == quote:
			name = append(name, c)
			l.at++
		case c == quote:
			l.at++
			return string(name), nil
		default:
			name = append(name, c)
		}
	}
	return "", errTorn
}

// skip passes over spaces and comments.
func (l *lexer) skip() error {
	for l.at < len(l.b) {
		rest := l.b[l.at:]
		switch c := rest[0]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f' || c == 0:
			l.at++
		case bytes.HasPrefix(rest, []byte("/*!")) || bytes.HasPrefix(rest, []byte("/*M!")):
			l.at += bytes.IndexByte(rest, '!') + 1
			for l.at < len(l.b) && l.b[l.at] >= '0' && l.b[l.at] <= '9' { // the version
				l.at++
			}
		case bytes.HasPrefix(rest, []byte("*/")): // of such a comment
			l.at += 2
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest[2:], []byte("*/"))
			if end < 0 {
				return errTorn
			}
			l.at += 2 + end + 2
		case c == '#', bytes.HasPrefix(rest, []byte("--")) && (len(rest) == 2 || rest[2] <= ' '):
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			l.at += end
		default:
			return nil
		}
	}
	return nil
}

// action is what is done about a statement of the log.
type action int

const (
	run action = iota + 1
	ignore
	begin
	commit
	rollback
	refuse
)

// judge says what a statement is. Only what is known is run.
func (s statement) judge() action {
	word := func(i int) string {
		if i < len(s.words) {
			return s.words[i]
		}
		return ""
	}
	switch word(0) {
	case "BEGIN":
		return begin
	case "COMMIT":
		return commit
	case "ROLLBACK":
		if word(1) == "" || word(1) == "WORK" {
			return rollback
		}
		return run
	case "START":
		return begin
	case "INSERT", "UPDATE", "DELETE", "REPLACE", "TRUNCATE", "SAVEPOINT", "RELEASE", "WITH":
		return run
	case "CREATE", "ALTER", "DROP", "RENAME":
		return s.judgeDefinition(word(0))
	case "ANALYZE", "OPTIMIZE", "REPAIR", "FLUSH", "GRANT", "REVOKE", "SET", "INSTALL", "UNINSTALL", "CHECK":
		if word(0) == "SET" && word(1) == "STATEMENT" {
			return run
		}
		return ignore
	}
	return refuse
}

// judgeDefinition says what a CREATE, ALTER, DROP or RENAME is of.
func (s statement) judgeDefinition(verb string) action {
	for _, w := range s.words[1:] {
		switch w {
		case "USER", "ROLE", "SERVER", "TABLESPACE", "LOGFILE", "UNDO", "RESOURCE", "INSTANCE":
			return ignore
		case "DATABASE", "SCHEMA":
			if verb == "DROP" {
				return refuse
			}
			if verb == "CREATE" {
				return ignore
			}
			return run
		case "TABLE", "TABLES", "INDEX", "VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "SEQUENCE", "KEY":
			return run
		}
	}
	return refuse
}

func (s statement) String() string {
	if len(s.words) > 3 {
		return strings.Join(s.words[:3], " ") + " …"
	}
	return fmt.Sprintf("%s", strings.Join(s.words, " "))
}
