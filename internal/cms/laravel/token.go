package laravel

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// tokenKind tells tokens of PHP apart, as far as config files need it.
type tokenKind int

const (
	endOfFile tokenKind = iota
	word                // a name, with its namespace: Illuminate\Support\Str
	number
	text     // a string literal, its quotes and escapes resolved
	template // a string with variables in it
	variable
	sign // an operator or a bracket
)

type token struct {
	kind  tokenKind
	value string
}

func (t token) is(value string) bool { return t.kind == sign && t.value == value }

// Signs of more than one character, longest first.
var longSigns = []string{"===", "!==", "...", "?->", "::", "=>", "->", "??", "?:", "==", "!=", "&&", "||", "<=", ">=",
	"**", "<<", ">>"}

var errSyntax = errors.New("this is not PHP that can be read")

// tokens splits a PHP file. Comments and white space are left out.
func tokens(source string) ([]token, error) {
	_, rest, found := strings.Cut(source, "<?php")
	if !found {
		return nil, errSyntax
	}
	var all []token
	for rest != "" {
		if n := skipped(rest); n > 0 {
			rest = rest[n:]
			continue
		}
		t, n, err := next(rest)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
		rest = rest[n:]
	}
	return all, nil
}

// skipped is how many bytes of white space or of a comment come first.
func skipped(rest string) int {
	switch {
	case strings.ContainsRune(" \t\r\n", rune(rest[0])):
		return 1
	case strings.HasPrefix(rest, "//"), rest[0] == '#' && !strings.HasPrefix(rest, "#["):
		if end := strings.IndexByte(rest, '\n'); end >= 0 {
			return end + 1
		}
		return len(rest)
	case strings.HasPrefix(rest, "/*"):
		if end := strings.Index(rest[2:], "*/"); end >= 0 {
			return end + 4
		}
		return len(rest)
	}
	return 0
}

// next reads one token and says how many bytes it has.
func next(rest string) (token, int, error) {
	c := rest[0]
	switch {
	case c == '\'':
		return single(rest)
	case c == '"':
		return double(rest)
	case c >= '0' && c <= '9':
		n := span(rest, func(c byte) bool { return wordByte(c) || c == '.' })
		return token{number, strings.ReplaceAll(rest[:n], "_", "")}, n, nil
	case c == '$':
		n := 1 + span(rest[1:], wordByte)
		return token{variable, rest[:n]}, n, nil
	case wordByte(c) || c == '\\':
		n := span(rest, func(c byte) bool { return wordByte(c) || c == '\\' })
		return token{word, rest[:n]}, n, nil
	}
	for _, s := range longSigns {
		if strings.HasPrefix(rest, s) {
			return token{sign, s}, len(s), nil
		}
	}
	_, n := utf8.DecodeRuneInString(rest)
	return token{sign, rest[:n]}, n, nil
}

func wordByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

func span(s string, in func(byte) bool) int {
	n := 0
	for n < len(s) && in(s[n]) {
		n++
	}
	return n
}

// single reads a literal in single quotes: only \' and \\ are escapes.
func single(rest string) (token, int, error) {
	var b strings.Builder
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '\'':
			return token{text, b.String()}, i + 1, nil
		case c == '\\' && i+1 < len(rest) && (rest[i+1] == '\'' || rest[i+1] == '\\'):
			i++
			b.WriteByte(rest[i])
		default:
			b.WriteByte(c)
		}
	}
	return token{}, 0, errSyntax
}

var escapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'v': '\v', 'f': '\f', 'e': 0x1b, '\\': '\\', '$': '$',
	'"': '"'}

// double reads a literal in double quotes. One with a variable in it, or with
// an escape by number, is a template: its value is not known.
func double(rest string) (token, int, error) {
	var b strings.Builder
	kind := text
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"':
			return token{kind, b.String()}, i + 1, nil
		case c == '\\' && i+1 < len(rest):
			i++
			plain, known := escapes[rest[i]]
			switch {
			case known:
				b.WriteByte(plain)
			case strings.IndexByte("xu01234567", rest[i]) >= 0:
				kind = template
			default:
				b.WriteByte('\\')
				b.WriteByte(rest[i])
			}
		case c == '$' && i+1 < len(rest) && (wordByte(rest[i+1]) || rest[i+1] == '{'),
			c == '{' && i+1 < len(rest) && rest[i+1] == '$':
			kind = template
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return token{}, 0, errSyntax
}
