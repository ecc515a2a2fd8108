package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
)

// topLevel takes a JSON object apart without decoding its values. It does what
// Unmarshal into a map does, a third as dear: every row of the queue, PHP's
// too, passes here. The values are parts of raw.
func topLevel(raw []byte) (map[string]json.RawMessage, error) {
	if !json.Valid(raw) {
		var keys map[string]json.RawMessage
		return nil, json.Unmarshal(raw, &keys) // for its error
	}
	rest := bytes.TrimLeft(raw, " \t\r\n")
	if rest[0] != '{' {
		return nil, errors.New("it is another kind of value")
	}
	keys := make(map[string]json.RawMessage, 16)
	rest = skipSpace(rest[1:])
	for rest[0] != '}' {
		n := valueEnd(rest)
		name := text(rest[:n])
		rest = skipSpace(skipSpace(rest[n:])[1:]) // over the colon
		n = valueEnd(rest)
		keys[name] = json.RawMessage(rest[:n:n])
		if rest = skipSpace(rest[n:]); rest[0] == ',' {
			rest = skipSpace(rest[1:])
		}
	}
	return keys, nil
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
