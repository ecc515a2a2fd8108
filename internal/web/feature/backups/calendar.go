package backups

import (
	"time"

	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

// calendarWeeks is how many weeks the calendar shows, this one included.
const calendarWeeks = 5

// calendarDay is a day and the newest backup of it.
type calendarDay struct {
	At    time.Time
	Class string // ok, part, fail; none where a backup is missing, out where there was none to expect
	Icon  string // "" without a backup
	Text  string // for who sees no colours
	ID    string // of the backup
	Today bool
	Count int // of the day's backups
}

// calendar is the last weeks, Monday first; nil without backups. Days before the
// oldest backup that is kept and days to come expect none.
func calendar(lang locale.Printer, now time.Time, list []Backup) []calendarDay {
	if len(list) == 0 {
		return nil
	}
	const day = 24 * time.Hour
	today := now.UTC().Truncate(day)
	monday := today.Add(-time.Duration((int(today.Weekday())+6)%7) * day)
	first := monday.Add(-(calendarWeeks - 1) * 7 * day)
	days := make([]calendarDay, calendarWeeks*7)
	oldest, newest := now, map[int]Backup{}
	for _, b := range list {
		if b.CreatedAt.Before(oldest) {
			oldest = b.CreatedAt
		}
		i := int(b.CreatedAt.UTC().Sub(first) / day)
		if b.CreatedAt.Before(first) || i >= len(days) {
			continue
		}
		days[i].Count++
		if b.CreatedAt.After(newest[i].CreatedAt) {
			newest[i] = b
		}
	}
	for i := range days {
		d := &days[i]
		d.At = first.Add(time.Duration(i) * day)
		d.Today, d.Class = d.At.Equal(today), "none"
		if d.At.After(today) || d.At.Before(oldest.UTC().Truncate(day)) {
			d.Class = "out"
		}
		if b, made := newest[i]; made {
			d.ID, d.Class, d.Icon = b.ID, "fail", "cross"
			switch b.Status {
			case "complete":
				d.Class, d.Icon = "ok", "check"
			case "partial":
				d.Class, d.Icon = "part", "warning"
			}
			d.Text = lang.Name("backups.", b.Status)
		} else if d.Class == "none" && !d.Today {
			d.Text = lang.Text("backups.calendar.none")
		}
	}
	return days
}
