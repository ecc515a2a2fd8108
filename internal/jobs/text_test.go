package jobs_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

func TestPlainText(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		limit int
		keep  []rune
		want  string
	}{
		"plain stays":               {"Đã gửi 3 thư.", 100, nil, "Đã gửi 3 thư."},
		"controls are spaces":       {"a\x00b\x1b[31mc\x7fd\u0085e", 100, nil, "a b [31mc d e"},
		"one line":                  {"a\r\nb\tc\u2028d\u2029e", 100, nil, "a  b c d e"},
		"lines are kept":            {"a\r\nb\tc\u2028d", 100, []rune{'\n'}, "a \nb c\u2028d"},
		"lines and tabs are kept":   {"a\r\nb\tc\x00", 100, []rune{'\n', '\t'}, "a \nb\tc "},
		"broken bytes are replaced": {"a\xff\xfeb\xc3", 100, nil, "a\ufffdb\ufffd"},
		"characters are counted":    {"Đã gửi", 4, nil, "Đã g"},
		"exactly the limit":         {"Đã gửi", 6, nil, "Đã gửi"},
		"nothing":                   {"abc", 0, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := jobs.PlainText(c.text, c.limit, c.keep...); got != c.want {
				t.Errorf("%q, not %q", got, c.want)
			}
		})
	}
}

func FuzzPlainText(f *testing.F) {
	f.Add("a\xff\nb\u2028", 3)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		got := jobs.PlainText(text, max(limit, 0))
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > max(limit, 0) ||
			strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("%q becomes %q", text, got)
		}
		if again := jobs.PlainText(got, max(limit, 0)); again != got {
			t.Errorf("%q is not plain: it becomes %q", got, again)
		}
	})
}
