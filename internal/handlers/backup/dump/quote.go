package dump

import (
	"strings"
)

// quoteName writes an identifier.
func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// quoteText writes a short string literal.
func quoteText(s string) string { return string(appendQuoted(nil, []byte(s))) }

// escapes holds what a byte of a string literal becomes; 0 is itself. NUL,
// line ends and ^Z are escaped too: tools that read dumps trip over them.
var escapes = [256]byte{
	0: '0', '\n': 'n', '\r': 'r', 0x1a: 'Z', '\'': '\'', '"': '"', '\\': '\\',
}

func appendQuoted(b, value []byte) []byte {
	b = append(b, '\'')
	from := 0
	for i, c := range value {
		if e := escapes[c]; e != 0 {
			b = append(b, value[from:i]...)
			b = append(b, '\\', e)
			from = i + 1
		}
	}
	b = append(b, value[from:]...)
	return append(b, '\'')
}

const hexDigits = "0123456789abcdef"

// appendHex writes a binary literal; an empty one has no such form.
func appendHex(b, value []byte) []byte {
	if len(value) == 0 {
		return append(b, "''"...)
	}
	b = append(b, '0', 'x')
	for _, c := range value {
		b = append(b, hexDigits[c>>4], hexDigits[c&15])
	}
	return b
}
