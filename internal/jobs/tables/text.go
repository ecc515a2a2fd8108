package tables

import (
	"strings"
)

// CutText bounds a text for people to 64 KiB that every column takes.
func CutText(text string) string {
	const limit, rest = 64<<10 - 1, "\n(the rest was cut off)"
	text = ValidText(text)
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(rest)], "") + rest
}

// ValidText is text in UTF-8 without NUL, which PostgreSQL refuses.
func ValidText(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

// CutWord cuts a word to what our columns hold.
func CutWord(word string) string {
	word = ValidText(word)
	for i := range word {
		if i >= 188 {
			return word[:i]
		}
	}
	return word
}

// FirstLine is the message of an error text.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
