package analytics

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

var isoWeek = regexp.MustCompile(`^(\d{4})-W(\d{2})$`)

// weekStart is the Monday of a week written as 2026-W09.
func weekStart(text string) (time.Time, error) {
	m := isoWeek.FindStringSubmatch(text)
	if m == nil {
		return time.Time{}, phrase.Errorf("a week is written as 2026-W09, not %q", text)
	}
	year, _ := strconv.Atoi(m[1]) // digits
	week, _ := strconv.Atoi(m[2])
	// The fourth of January is always in the first week.
	start := monday(time.Date(year, 1, 4, 0, 0, 0, 0, time.UTC)).AddDate(0, 0, 7*(week-1))
	if y, w := start.ISOWeek(); y != year || w != week {
		return time.Time{}, phrase.Errorf("%d has no week %d", year, week)
	}
	return start, nil
}

// monday is the first day of a day's week.
func monday(day time.Time) time.Time {
	return day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
}

// ParseDays reads the days of a report: 2026-01-01..2026-01-31, one day, a
// week (2026-W05), a month (2026-01) or a year (2026). Both ends are included.
func ParseDays(text string) (DateRange, error) {
	span := func(first, after time.Time) DateRange {
		return DateRange{first.Format(time.DateOnly), after.AddDate(0, 0, -1).Format(time.DateOnly)}
	}
	if first, err := weekStart(text); err == nil {
		return span(first, first.AddDate(0, 0, 7)), nil
	}
	if first, err := time.Parse("2006-01", text); err == nil {
		return span(first, first.AddDate(0, 1, 0)), nil
	}
	if first, err := time.Parse("2006", text); err == nil {
		return span(first, first.AddDate(1, 0, 0)), nil
	}
	days := DateRange{text, text}
	if first, last, found := strings.Cut(text, ".."); found {
		days = DateRange{first, last}
	}
	p := ProcessPayload{DateRange: &days}
	if p.Validate() != nil {
		return DateRange{}, fmt.Errorf("%q are no days: write 2026-01-01..2026-01-31, 2026-01-31, 2026-W05, 2026-01 "+
			"or 2026", text)
	}
	return days, nil
}
