package dump

import (
	"bytes"
	"strings"
)

const (
	// longText is where a text costs the server more within a statement, where it looks
	// at each byte three times, than beside it.
	longText = 128
	// longTexts bounds how many go beside one statement; servers take 65,535.
	longTexts = 10_000
)

// withoutLongTexts writes an INSERT with a placeholder for each of its long texts, and
// those as the server is to store them. The statement itself is left as it is.
func withoutLongTexts(statement []byte) (short string, texts []any) {
	var b strings.Builder
	from := 0
	for i := 0; i < len(statement) && len(texts) < longTexts; i++ {
		c := statement[i]
		if c != '\'' && c != '"' && c != '`' {
			continue
		}
		opened := i
		i = closing(statement, i)
		if c == '\'' && i-opened > longText && isValue(statement, opened, i) {
			b.Write(statement[from:opened])
			b.WriteByte('?')
			texts = append(texts, unescaped(statement[opened+1:i]))
			from = i + 1
		}
	}
	b.Write(statement[from:])
	return b.String(), texts
}

// isValue says whether a quoted text is a whole value of a row: what a character set
// comes before, or a doubled quote within, is not.
func isValue(statement []byte, opened, closed int) bool {
	return opened > 0 && closed+1 < len(statement) && bytes.IndexByte([]byte("(,"), statement[opened-1]) >= 0 &&
		bytes.IndexByte([]byte("),"), statement[closed+1]) >= 0
}

// unescapes holds what a byte after a backslash means; 0 is itself.
var unescapes = [256]byte{'b': '\b', 'n': '\n', 'r': '\r', 't': '\t', 'Z': 0x1a}

// unescaped is a copy of the text that a literal means.
func unescaped(literal []byte) []byte {
	text := make([]byte, 0, len(literal))
	for {
		i := bytes.IndexByte(literal, '\\')
		if i < 0 || i+1 == len(literal) {
			return append(text, literal...)
		}
		text = append(text, literal[:i]...)
		switch c := literal[i+1]; {
		case c == '0':
			text = append(text, 0)
		case c == '%' || c == '_':
			text = append(text, '\\', c)
		case unescapes[c] != 0:
			text = append(text, unescapes[c])
		default:
			text = append(text, c)
		}
		literal = literal[i+2:]
	}
}
