package laravel

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// asciiTable is the table of voku/portable-ascii (MIT) that ASCII::to_ascii
// uses for the language "en": a character, or two to five that belong
// together, and what replaces them. Versions 1.5 to 2.1 have the same table. Its
// licence is ascii.LICENSE.
//
//go:embed ascii.tsv
var asciiTable string

// table is asciiTable, and the length in bytes of its longest key.
type table struct {
	to      map[string]string
	longest int
}

var replacements = sync.OnceValue(func() table {
	t := table{to: map[string]string{}}
	for line := range strings.Lines(asciiTable) {
		from, to, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		t.to[from], t.longest = to, max(t.longest, len(from))
	}
	return t
})

// ascii is Laravel's Str::ascii: what the table does not know is left out.
// Where characters of two keys overlap, as in Bengali and Burmese,
// portable-ascii up to 2.0 replaces the longer key first, and since 2.1 the one
// further left.
func ascii(s string, leftFirst bool) string {
	if isASCII(s) {
		return s
	}
	if leftFirst {
		s = replaceLeftFirst(s)
	} else {
		s = replaceLongestFirst(s)
	}
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf {
			return -1
		}
		return r
	}, s)
}

func replaceLongestFirst(s string) string {
	var foreign []string // each non-ASCII character, in order
	for _, r := range s {
		if r >= utf8.RuneSelf {
			foreign = append(foreign, string(r))
		}
	}
	table := replacements().to
	// Neighbours are those among the non-ASCII characters, as in the original;
	// the search is in the whole text. Keys of four and five characters are not
	// used in the language "en".
	for length := 3; length >= 1; length-- {
		for i := 0; i+length <= len(foreign); i++ {
			from := strings.Join(foreign[i:i+length], "")
			if to, known := table[from]; known {
				s = strings.ReplaceAll(s, from, to)
			}
		}
	}
	return s
}

// In short texts portable-ascii 2.1 uses keys that begin with a letter of ASCII
// only where a mark that combines follows one.
const shortText = 64

var combining = regexp.MustCompile(`[A-Za-z][\x{0300}-\x{036F}]`)

func replaceLeftFirst(s string) string {
	table := replacements()
	foreign := 0
	for _, r := range s {
		if r >= utf8.RuneSelf {
			foreign++
		}
	}
	mixed := len(s) > shortText || foreign > 1 && combining.MatchString(s)
	var b strings.Builder
	for s != "" {
		from := s[:1]
		if mixed || s[0] >= utf8.RuneSelf {
			from = s[:table.prefix(s)]
		}
		if to, known := table.to[from]; known {
			b.WriteString(to)
		} else {
			b.WriteString(from)
		}
		s = s[len(from):]
	}
	return b.String()
}

// prefix is the length of the longest key that s begins with, 1 without one.
func (t table) prefix(s string) int {
	for n := min(t.longest, len(s)); n > 1; n-- {
		if _, known := t.to[s[:n]]; known {
			return n
		}
	}
	return 1
}

func isASCII(s string) bool {
	return !slices.ContainsFunc([]byte(s), func(c byte) bool { return c >= utf8.RuneSelf })
}

var notInSlug = regexp.MustCompile(`[^\pL\pN\s_-]+`)

// slug is Laravel's Str::slug in its default language.
func slug(title, separator string, leftFirst bool) string {
	flip := "-"
	if separator == "-" {
		flip = "_"
	}
	s := runs(flip).ReplaceAllLiteralString(ascii(title, leftFirst), separator)
	s = strings.ReplaceAll(s, "@", separator+"at"+separator)
	s = notInSlug.ReplaceAllLiteralString(strings.ToLower(s), "")
	if separator != "" {
		s = regexp.MustCompile(`[`+regexp.QuoteMeta(separator)+`\s]+`).ReplaceAllLiteralString(s, separator)
	} else {
		s = regexp.MustCompile(`\s+`).ReplaceAllLiteralString(s, "")
	}
	return strings.Trim(s, separator)
}

func runs(s string) *regexp.Regexp { return regexp.MustCompile(regexp.QuoteMeta(s) + "+") }
