package ops

import (
	"time"

	"github.com/cmsjobs/cmsjobs/internal/timespan"
)

// timeLayouts are the ways to write a point of time. Without a zone it is UTC.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateTime, "2006-01-02T15:04",
	"2006-01-02 15:04", time.DateOnly}

// ParseTime reads a point of time: RFC 3339, a date with or without a time of
// day (UTC), or a length of time before now (2h, 3d). "" is the zero time.
// field names the input in the refusal.
func ParseTime(text, field string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, text); err == nil && t.Year() > 0 && t.Year() < 10000 {
			return t.UTC(), nil
		}
	}
	if d, err := timespan.Parse(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, invalid(field, "%s must be a time as 2026-11-21T15:04:05Z, a day, or a length like 24h or "+
		"3d; not %q.", field, shown(text))
}
