package schedule

import (
	"fmt"
	"time"
)

// Window is a part of each day, by the wall clock: [From, To) in minutes since
// midnight. It may go over midnight. The zero Window is the whole day.
type Window struct{ From, To int }

// ParseWindow reads "01:00-05:00"; "" is the whole day.
func ParseWindow(text string) (Window, error) {
	if text == "" {
		return Window{}, nil
	}
	var fromHour, fromMinute, toHour, toMinute int
	n, err := fmt.Sscanf(text, "%d:%d-%d:%d", &fromHour, &fromMinute, &toHour, &toMinute)
	w := Window{fromHour*60 + fromMinute, toHour*60 + toMinute}
	if err != nil || n != 4 || w.From < 0 || w.From >= 24*60 || w.To < 0 || w.To > 24*60 || fromMinute > 59 ||
		toMinute > 59 || w.From == w.To {
		return Window{}, fmt.Errorf("%q is no window like 01:00-05:00", text)
	}
	return w, nil
}

// Has says whether the wall clock of t lies in the window.
func (w Window) Has(t time.Time) bool {
	if w == (Window{}) {
		return true
	}
	minute := t.Hour()*60 + t.Minute()
	if w.From < w.To {
		return minute >= w.From && minute < w.To
	}
	return minute >= w.From || minute < w.To
}

// String is how people write it.
func (w Window) String() string {
	return fmt.Sprintf("%02d:%02d-%02d:%02d", w.From/60, w.From%60, w.To/60, w.To%60)
}
