package binlog

import (
	"bytes"
	"errors"
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
func (r rewriter) rewrite(query []byte, mode uint64) (statement, error) {
	l := lexer{b: query, mode: mode}
	p := rewriting{rewriter: r, query: query}
	for {
		t, err := l.next()
		if err != nil {
			return p.s, err
		}
		if t.kind == dotToken && p.pending != nil {
			p.qualified(*p.pending)
		}
		p.pending = nil
		if t.kind == nameToken {
			p.name(t)
		} else {
			p.afterDatabase = false
		}
		p.afterDot = t.kind == dotToken
		if t.kind == endToken {
			p.s.text = append(p.s.text, query[p.last:]...)
			return p.s, nil
		}
	}
}

// rewriting is one statement on its way.
type rewriting struct {
	rewriter
	query   []byte
	s       statement
	pending *token // a name that may be a database's
	last    int    // what of the query is not in the text yet
	words   int    // before the last name

	afterDot, afterDatabase bool
}

func (p *rewriting) replace(t token) {
	p.s.text = append(append(p.s.text, p.query[p.last:t.start]...), quotedName(p.to)...)
	p.last, p.s.ours = t.end, true
}

// qualified takes a name that a dot follows.
func (p *rewriting) qualified(t token) {
	switch {
	case strings.EqualFold(t.name, p.from):
		p.replace(t)
	case p.others(t.name):
		p.s.elsewhere = p.s.elsewhere || p.s.other == "" && !p.s.ours && changes(p.s.words[:p.words])
		p.s.other = t.name
	}
}

func (p *rewriting) name(t token) {
	word := strings.ToUpper(t.name)
	if p.words = len(p.s.words); t.plain && p.words < maxWords {
		p.s.words = append(p.s.words, word)
	}
	switch {
	case p.afterDatabase && strings.EqualFold(t.name, p.from):
		p.replace(t)
	case !p.afterDot:
		p.pending = &t
	}
	between := word == "IF" || word == "NOT" || word == "EXISTS"
	p.afterDatabase = t.plain && (word == "DATABASE" || word == "SCHEMA" || p.afterDatabase && between)
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
	switch c := l.b[start]; {
	case c == '\'' || c == '"' || c == '`':
		return l.text(start, c)
	case isName(c):
		for l.at < len(l.b) && isName(l.b[l.at]) {
			l.at++
		}
		return token{nameToken, start, l.at, string(l.b[start:l.at]), true}, nil
	case c == '.' && !l.fraction(start):
		l.at++
		return token{kind: dotToken, start: start, end: l.at}, nil
	}
	l.at++
	return token{kind: otherToken, start: start, end: l.at}, nil
}

// text reads what is quoted: a name or a text.
func (l *lexer) text(start int, quote byte) (token, error) {
	if quote == '`' || quote == '"' && l.mode&ansiQuotes != 0 {
		name, err := l.quoted(quote, false)
		return token{nameToken, start, l.at, name, false}, err
	}
	_, err := l.quoted(quote, l.mode&noBackslashEscapes == 0)
	return token{kind: otherToken, start: start, end: l.at}, err
}

// fraction says whether a dot begins a number.
func (l *lexer) fraction(dot int) bool {
	return dot+1 < len(l.b) && l.b[dot+1] >= '0' && l.b[dot+1] <= '9' && !l.afterName(dot)
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
		n, err := blank(rest)
		if err != nil || n == 0 {
			return err
		}
		l.at += n
	}
	return nil
}

// blank is how long the space or comment is that a text begins with. Of a comment that
// servers execute it is only the mark.
func blank(b []byte) (int, error) {
	begins := func(mark string) bool { return bytes.HasPrefix(b, []byte(mark)) }
	switch {
	case bytes.IndexByte([]byte(" \t\n\r\v\f\x00"), b[0]) >= 0:
		return 1, nil
	case begins("/*!") || begins("/*M!"):
		n := bytes.IndexByte(b, '!') + 1
		for n < len(b) && b[n] >= '0' && b[n] <= '9' { // the version
			n++
		}
		return n, nil
	case begins("*/"): // of such a comment
		return len("*/"), nil
	case begins("/*"):
		end := bytes.Index(b[2:], []byte("*/"))
		if end < 0 {
			return 0, errTorn
		}
		return 2 + end + 2, nil
	case begins("#"), begins("--") && (len(b) == 2 || b[2] <= ' '):
		if end := bytes.IndexByte(b, '\n'); end >= 0 {
			return end, nil
		}
		return len(b), nil
	}
	return 0, nil
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
	return strings.Join(s.words, " ")
}
