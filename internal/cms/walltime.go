package cms

import (
	"fmt"
	"time"
)

const wallFormat = "2006-01-02 15:04:05"

// WallClock writes an instant as the CMS's tables have it: a wall-clock string
// in the CMS's zone.
func WallClock(t time.Time, zone *time.Location) string { return t.In(zone).Format(wallFormat) }

// wallTime scans a column of wall-clock time, whatever type the driver makes
// of it, and keeps what cannot be one for the error.
type wallTime struct {
	t    time.Time // its fields are the wall clock's; its zone means nothing
	null bool
	bad  string
}

// Scan never fails: one absurd date must not end the reading of a table.
func (w *wallTime) Scan(value any) error {
	*w = wallTime{}
	switch v := value.(type) {
	case nil:
		w.null = true
	case time.Time:
		w.t = v
	case []byte:
		w.parse(string(v))
	case string:
		w.parse(v)
	default:
		w.bad = fmt.Sprint(v)
	}
	if !w.null && w.bad == "" && !plausible(w.t) {
		w.bad = w.t.Format(wallFormat)
	}
	return nil
}

// plausible says that a wall clock shows a year from 1970 to 2099.
func plausible(t time.Time) bool {
	const from, to = 0, 4102444800 // 2100-01-01
	_, offset := t.Zone()
	wall := t.Unix() + int64(offset)
	return from <= wall && wall < to
}

func (w *wallTime) parse(text string) {
	for _, layout := range []string{wallFormat, time.RFC3339Nano, "2006-01-02 15:04:05.999999999-07:00",
		"2006-01-02T15:04:05", "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			w.t = t
			return
		}
	}
	w.bad = text
	if text == "" {
		w.null, w.bad = true, ""
	}
}

// in is the instant that the wall clock of a zone showed so; zero for NULL.
func (w *wallTime) in(zone *time.Location) time.Time {
	if w.null || w.bad != "" {
		return time.Time{}
	}
	if w.t.Location() == zone && w.t.Nanosecond() == 0 {
		return w.t
	}
	year, month, day := w.t.Date()
	hour, minute, second := w.t.Clock()
	return time.Date(year, month, day, hour, minute, second, 0, zone)
}
