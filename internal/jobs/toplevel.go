package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// member is one key of a JSON object with its value, both parts of the object's
// text.
type member struct {
	name  []byte
	value json.RawMessage
}

// members are an object's in the order in which they stand; of equal names the
// last one counts.
type members []member

// value returns what stands under name, nil where there is nothing.
func (m members) value(name string) json.RawMessage {
	for i := len(m) - 1; i >= 0; i-- {
		if string(m[i].name) == name {
			return m[i].value
		}
	}
	return nil
}

// topLevel takes a JSON object apart without decoding its values. It accepts
// what Unmarshal into a map does, at a fraction of its price: every row of the
// queue, PHP's too, passes here. found is empty, with space for the members of
// the usual payload.
func topLevel(raw []byte, found members) (members, error) {
	if !json.Valid(raw) {
		var keys map[string]json.RawMessage
		return nil, json.Unmarshal(raw, &keys) // for its error
	}
	rest := bytes.TrimLeft(raw, " \t\r\n")
	if rest[0] != '{' {
		return nil, errors.New("it is another type of value")
	}
	rest = skipSpace(rest[1:])
	for rest[0] != '}' {
		n := valueEnd(rest)
		name := unquoted(rest[:n])
		rest = skipSpace(skipSpace(rest[n:])[1:]) // over the colon
		n = valueEnd(rest)
		found = append(found, member{name, json.RawMessage(rest[:n:n])})
		if rest = skipSpace(rest[n:]); rest[0] == ',' {
			rest = skipSpace(rest[1:])
		}
	}
	return found, nil
}

// unquoted is the text of a JSON string, a part of it where it can be.
func unquoted(quoted []byte) []byte {
	if plain := quoted[1 : len(quoted)-1]; bytes.IndexByte(plain, '\\') < 0 && utf8.Valid(plain) {
		return plain
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return nil
	}
	return []byte(s)
}

func skipSpace(b []byte) []byte {
	for b[0] == ' ' || b[0] == '\t' || b[0] == '\r' || b[0] == '\n' {
		b = b[1:]
	}
	return b
}

// valueEnd is the length of the value at the beginning of valid JSON.
func valueEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = stringEnd(b, i)
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // the end of the object around a number or word
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return len(b)
}

// stringEnd is the place of the quote that ends the string at i.
func stringEnd(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i
}
