package history

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// What differs from one failure to the next of the same cause, in this order.
var varying = []struct {
	form *regexp.Regexp
	word string
}{
	{regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`), "<id>"},
	{regexp.MustCompile(`"[^"]*"|'[^']*'|` + "`[^`]*`"), "<text>"},
	{regexp.MustCompile(`[\w.+-]+@[\w-]+(\.[\w-]+)+`), "<mail>"},
	{regexp.MustCompile(`https?://[^\s,;)]+`), "<url>"},
	{regexp.MustCompile(`(?:[A-Za-z]:)?[\\/][\w.@-]+(?:[\\/][\w.@-]+)+`), "<path>"},
	{regexp.MustCompile(`\b(?:0x)?[0-9a-fA-F]*[0-9][0-9a-fA-F]{7,}\b`), "<id>"},
	{regexp.MustCompile(`\d+(?:[.,:]\d+)*`), "<n>"},
}

// maxMessage bounds the message that is compared and kept.
const maxMessage = 300

// Fingerprint names the cause of a failure: messages of one type that differ in
// numbers, ids, addresses, paths and quoted parts only have the same one.
func Fingerprint(kind, exception string) string {
	text := messageOf(exception)
	for _, v := range varying {
		text = v.form.ReplaceAllString(text, v.word)
	}
	sum := sha256.Sum256([]byte(kind + "\n" + strings.Join(strings.Fields(text), " ")))
	return hex.EncodeToString(sum[:8])
}

// messageOf is the message of an exception: its first line, cut.
func messageOf(exception string) string {
	line := strings.TrimSpace(tables.FirstLine(strings.TrimSpace(exception)))
	if runes := []rune(line); len(runes) > maxMessage {
		line = string(runes[:maxMessage])
	}
	return line
}
