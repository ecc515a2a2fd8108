package repository

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// escape writes a text so that it has no control characters and is UTF-8. The
// shell's printf %b reads it: a byte is \0 and three octal digits, a backslash is
// two.
func escape(s string) string {
	plain := func(r rune, size int) bool {
		return r >= ' ' && r != 0x7f && r != '\\' && (r != utf8.RuneError || size > 1)
	}
	var out strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case plain(r, size):
			out.WriteString(s[:size])
		case r == '\\':
			out.WriteString(`\\`)
		default:
			for i := range size {
				fmt.Fprintf(&out, `\0%03o`, s[i])
			}
		}
		s = s[size:]
	}
	return out.String()
}

// unescape is escape's reverse. It refuses every other spelling, so that a text
// has one form.
func unescape(s string) (string, bool) {
	if !strings.Contains(s, `\`) {
		return s, escape(s) == s
	}
	var out strings.Builder
	for rest := s; rest != ""; {
		plain, after, found := strings.Cut(rest, `\`)
		out.WriteString(plain)
		switch {
		case !found:
			rest = ""
		case strings.HasPrefix(after, `\`):
			out.WriteByte('\\')
			rest = after[1:]
		case len(after) >= 4 && after[0] == '0' && after[1] <= '3' && strings.Trim(after[1:4], "01234567") == "":
			out.WriteByte((after[1]-'0')<<6 | (after[2]-'0')<<3 | (after[3] - '0'))
			rest = after[4:]
		default:
			return "", false
		}
	}
	return out.String(), escape(out.String()) == s
}
