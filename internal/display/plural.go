package display

import (
	"fmt"
	"strings"
)

// Sprintf is fmt.Sprintf with plural forms; see [Forms].
func Sprintf(form string, args ...any) string { return fmt.Sprintf(Forms(form, args), args...) }

// Forms chooses the plural forms of a text: "%d {job waits|jobs wait}" has two,
// of which the first is for one. A form belongs to the value before it.
// Languages without plurals have no braces.
func Forms(text string, args []any) string {
	if !strings.Contains(text, "{") {
		return text
	}
	var out strings.Builder
	used := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '%':
			end := i + 1
			for end < len(text) && strings.IndexByte("0123456789.+-# ", text[end]) >= 0 {
				end++
			}
			end = min(end, len(text)-1)
			if text[end] != '%' {
				used++
			}
			out.WriteString(text[i : end+1])
			i = end
		case '{':
			forms, _, closed := strings.Cut(text[i+1:], "}")
			if !closed {
				out.WriteByte('{')
				continue
			}
			first, second, _ := strings.Cut(forms, "|")
			if used > 0 && used <= len(args) && one(args[used-1]) {
				second = first
			}
			out.WriteString(second)
			i += len(forms) + 1
		default:
			out.WriteByte(text[i])
		}
	}
	return out.String()
}

// one says whether a value is the number one.
func one(value any) bool { return fmt.Sprint(value) == "1" }
