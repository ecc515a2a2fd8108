package timespan

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Parse reads Go's durations and days besides: 500ms, 90s, 1h30m, 7d. A bare 0
// is no time; any other bare number is refused.
func Parse(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	days, rest, found := strings.Cut(text, "d")
	switch {
	case text == "", found && days == "":
		return 0, refusal(text)
	case !found:
		days, rest = "", text
	}
	var total time.Duration
	if days != "" {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || n > 36500 || n < -36500 {
			return 0, refusal(text)
		}
		total = time.Duration(n * 24 * float64(time.Hour))
	}
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil {
			return 0, refusal(text)
		}
		total += d
	}
	return total, nil
}

func refusal(text string) error {
	return fmt.Errorf("%q is not a length of time: write 500ms, 90s, 15m, 4h or 7d", text)
}
