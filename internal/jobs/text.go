package jobs

import (
	"slices"
	"strings"
	"unicode"
)

// PlainText makes foreign text fit for a column, a page and a log line: valid
// UTF-8 of at most limit characters in which every control character is a
// space, but for those to keep. Where '\n' is not kept, the result is one line:
// U+2028 and U+2029, which browsers and editors break at, are spaces too.
func PlainText(text string, limit int, keep ...rune) string {
	oneLine := !slices.Contains(keep, '\n')
	text = strings.Map(func(r rune) rune {
		control := unicode.IsControl(r) || oneLine && (r == '\u2028' || r == '\u2029')
		if control && !slices.Contains(keep, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
	n := 0
	for i := range text {
		if n == limit {
			return text[:i]
		}
		n++
	}
	return text
}
