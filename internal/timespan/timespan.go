package timespan

import (
	"errors"
	"fmt"
	"math"
	"regexp"
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
	whole, err := ofDays(text, days)
	if err != nil || rest == "" {
		return whole, err
	}
	d, err := time.ParseDuration(rest)
	if err != nil && tooMany.MatchString(rest) {
		return 0, outOfRange(text)
	}
	if err != nil {
		return 0, refusal(text)
	}
	if total := whole + d; total <= maxDays*24*time.Hour && total >= -maxDays*24*time.Hour {
		return total, nil
	}
	return 0, outOfRange(text)
}

// ofDays reads the days of text, of which it may have none.
func ofDays(text, days string) (time.Duration, error) {
	if days == "" {
		return 0, nil
	}
	n, err := strconv.ParseFloat(days, 64)
	if errors.Is(err, strconv.ErrRange) || n > maxDays || n < -maxDays {
		return 0, outOfRange(text)
	}
	if err != nil || math.IsNaN(n) {
		return 0, refusal(text)
	}
	return time.Duration(n * 24 * float64(time.Hour)), nil
}

// maxDays is about a hundred years.
const maxDays = 36500

// tooMany is what time.ParseDuration refuses only because the number is too large.
var tooMany = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?(ns|us|µs|μs|ms|s|m|h))+$`)

func outOfRange(text string) error {
	return fmt.Errorf("%q is out of range: a length of time is at most %dd (100 years)", text, maxDays)
}

func refusal(text string) error {
	return fmt.Errorf("%q is not a length of time: write 500ms, 90s, 15m, 4h or 7d", text)
}
