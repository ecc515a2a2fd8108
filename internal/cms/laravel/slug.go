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
// uses for the language "en": a character, or two or three that belong
// together, and what replaces them. Versions 1.5 to 2.1 have the same table. Its
// licence is ascii.LICENSE.
//
//go:embed ascii.tsv
var asciiTable string

var replacements = sync.OnceValue(func() map[string]string {
	table := map[string]string{}
	for line := range strings.Lines(asciiTable) {
		from, to, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		table[from] = to
	}
	return table
})

// ASCII is Laravel's Str::ascii: what the table does not know is left out.
func ASCII(s string) string {
	if isASCII(s) {
		return s
	}
	var foreign []string // each non-ASCII character, in order
	for _, r := range s {
		if r >= utf8.RuneSelf {
			foreign = append(foreign, string(r))
		}
	}
	table := replacements()
	// Longer matches first. Neighbours are those among the non-ASCII
	// characters, as in the original; the search is in the whole text.
	for length := 3; length >= 1; length-- {
		for i := 0; i+length <= len(foreign); i++ {
			from := strings.Join(foreign[i:i+length], "")
			if to, known := table[from]; known {
				s = strings.ReplaceAll(s, from, to)
			}
		}
	}
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf {
			return -1
		}
		return r
	}, s)
}

func isASCII(s string) bool {
	return !slices.ContainsFunc([]byte(s), func(c byte) bool { return c >= utf8.RuneSelf })
}

var notInSlug = regexp.MustCompile(`[^\pL\pN\s_-]+`)

// Slug is Laravel's Str::slug in its default language.
func Slug(title, separator string) string {
	flip := "-"
	if separator == "-" {
		flip = "_"
	}
	s := runs(flip).ReplaceAllLiteralString(ASCII(title), separator)
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
