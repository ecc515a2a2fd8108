package format

import (
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/cmsjobs/cmsjobs/internal/redact"
)

// Duration is a length of time in its largest two units that matter.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < 2*time.Minute:
		return strconv.FormatInt(int64(d.Seconds()), 10) + " s"
	case d < 2*time.Hour:
		return strconv.FormatInt(int64(d.Minutes()), 10) + " min"
	case d < 48*time.Hour:
		return strconv.FormatInt(int64(d.Hours()), 10) + " h"
	}
	return strconv.FormatInt(int64(d.Hours()/24), 10) + " d"
}

// Number writes a number with thin spaces between thousands.
func Number[N int64 | int](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// Percent is the share of done in total, from 0 to 100.
func Percent(done, total int64) int64 {
	if total <= 0 {
		return 0
	}
	return min(max(done*100/total, 0), 100)
}

// FirstLine is the first line of a text, cut.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return redact.Clip(line, 240)
}

// Bytes is a size in its largest unit: 1.5 MiB.
func Bytes(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }
