package display

import (
	"fmt"
	"strings"
	"time"
)

// Short cuts a text for a table.
func Short(s string, width int) string {
	s, _, _ = strings.Cut(s, "\n")
	if runes := []rune(s); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return s
}

// Ago is a moment in words: "3m ago", "in 2h"; "–" where it is not known.
func Ago(t, now time.Time) string {
	if t.Unix() <= 0 { // a row of PHP may have 0
		return "–"
	}
	if d := now.Sub(t); d >= 0 {
		return Span(d) + " ago"
	}
	return "in " + Span(t.Sub(now))
}

// Span is a length of time in its largest unit.
func Span(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= 2*time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d >= time.Second:
		return fmt.Sprintf("%ds", d/time.Second)
	case d > 0:
		return fmt.Sprintf("%dms", d/time.Millisecond)
	}
	return "0s"
}

// Printable takes what could steer a terminal out of foreign text.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// Plural is "1 scheduler", "2 schedulers".
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// OneLine joins the lines of a text, as of several errors, by semicolons.
func OneLine(text string) string {
	if !strings.ContainsAny(text, "\r\n") {
		return text
	}
	var lines []string
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
