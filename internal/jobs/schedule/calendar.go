package schedule

import (
	"time"

	"github.com/robfig/cron/v3"

	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Calendar says at which moments an entry is due.
type Calendar struct {
	every  time.Duration // of "@every", counted from the Unix epoch; else 0
	fields *cron.SpecSchedule
}

// ParseCalendar reads a cron expression of five fields, a name like @daily, or
// "@every 90m". A zone in front (TZ=…) is refused: the scheduler has one.
func ParseCalendar(expression string) (Calendar, error) {
	parsed, err := cron.ParseStandard(expression)
	if err != nil {
		return Calendar{}, phrase.Errorf("%q is no cron expression: %w", expression, err)
	}
	switch s := parsed.(type) {
	case cron.ConstantDelaySchedule:
		return Calendar{every: s.Delay}, nil
	case *cron.SpecSchedule:
		if s.Location != time.Local {
			return Calendar{}, phrase.Errorf("%q names a zone: set schedule.zone instead", expression)
		}
		return Calendar{fields: s}, nil
	}
	return Calendar{}, phrase.Errorf("%q is no cron expression that can be used here", expression)
}

// horizon is how far Next looks: 29 February on a certain weekday comes within
// 40 years.
const horizon = 40 * 366 * 24 * time.Hour

// Next are the n first ticks after a moment.
func (c Calendar) Next(after time.Time, zone *time.Location, n int) []time.Time {
	var ticks []time.Time
	c.walk(after, after.Add(horizon), zone, func(t time.Time) bool {
		ticks = append(ticks, t)
		return len(ticks) < n
	})
	return ticks
}

// Between are the ticks in (after, until], oldest first.
func (c Calendar) Between(after, until time.Time, zone *time.Location) []time.Time {
	var ticks []time.Time
	c.walk(after, until, zone, func(t time.Time) bool {
		ticks = append(ticks, t)
		return true
	})
	return ticks
}

// walk yields the ticks in (after, until] until yield says stop.
func (c Calendar) walk(after, until time.Time, zone *time.Location, yield func(time.Time) bool) {
	if c.every > 0 {
		c.walkEvery(after, until, yield)
		return
	}
	local := after.In(zone)
	last := time.Time{}
	// From the day before: its last tick may lie behind a gap at midnight.
	for day := (date{local.Year(), local.Month(), local.Day() - 1}).normal(); !day.begins(zone).After(until); day =
		day.next() {
		if !c.onDay(day) {
			continue
		}
		moments := c.wallMoments
		if c.everyHour() {
			moments = c.realMoments
		}
		for _, t := range moments(day, zone) {
			if !t.After(after) || t.After(until) || t.Equal(last) {
				continue
			}
			last = t
			if !yield(t) {
				return
			}
		}
	}
}

func (c Calendar) walkEvery(after, until time.Time, yield func(time.Time) bool) {
	n := after.UnixNano()/int64(c.every) + 1
	for t := time.Unix(0, n*int64(c.every)); !t.After(until); t = t.Add(c.every) {
		if !yield(t) {
			return
		}
	}
}

const (
	allHours = 1<<24 - 1
	starBit  = 1 << 63 // robfig/cron marks a field that was *
)

// everyHour says that an entry follows real time: it names no hour.
func (c Calendar) everyHour() bool { return c.fields.Hour&allHours == allHours }

// onDay says whether the calendar day matches. As in every cron, a day of the
// month and a day of the week that are both given match when either does.
func (c Calendar) onDay(d date) bool {
	day := time.Date(d.year, d.month, d.day, 12, 0, 0, 0, time.UTC)
	if c.fields.Month&(1<<uint(d.month)) == 0 {
		return false
	}
	dom := c.fields.Dom&(1<<uint(d.day)) != 0
	dow := c.fields.Dow&(1<<uint(day.Weekday())) != 0
	if c.fields.Dom&starBit != 0 || c.fields.Dow&starBit != 0 {
		return dom && dow
	}
	return dom || dow
}

// wallMoments are the moments of a day's wall-clock times, in order.
func (c Calendar) wallMoments(d date, zone *time.Location) []time.Time {
	var moments []time.Time
	for hour := range 24 {
		for minute := range 60 {
			if c.fields.Hour&(1<<uint(hour)) == 0 || c.fields.Minute&(1<<uint(minute)) == 0 {
				continue
			}
			if t, ok := instant(d, hour, minute, zone); ok {
				moments = append(moments, t)
			}
		}
	}
	return moments
}

// realMoments are the moments of a day at which the wall clock shows one of
// the minutes, as often as it does.
func (c Calendar) realMoments(d date, zone *time.Location) []time.Time {
	var moments []time.Time
	end := d.next().begins(zone)
	for t := d.begins(zone); t.Before(end); t = t.Add(time.Minute) {
		if c.fields.Minute&(1<<uint(t.In(zone).Minute())) != 0 {
			moments = append(moments, t)
		}
	}
	return moments
}

// date is a calendar day.
type date struct {
	year  int
	month time.Month
	day   int
}

func (d date) normal() date {
	y, m, day := time.Date(d.year, d.month, d.day, 12, 0, 0, 0, time.UTC).Date()
	return date{y, m, day}
}

func (d date) next() date { return date{d.year, d.month, d.day + 1}.normal() }

// begins is the day's first instant, on a whole minute.
func (d date) begins(zone *time.Location) time.Time {
	t, _ := instant(d, 0, 0, zone)
	return t
}

// instant is the moment of a wall-clock time: the first one where the clock
// shows it twice, the first after the gap where it never does. A day that a
// zone leaves out whole (Samoa, 30 December 2011) has no moments: ok is false.
func instant(d date, hour, minute int, zone *time.Location) (t time.Time, ok bool) {
	t = time.Date(d.year, d.month, d.day, hour, minute, 0, 0, zone)
	wall := time.Date(d.year, d.month, d.day, hour, minute, 0, 0, time.UTC)
	shown := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), 0, 0, time.UTC)
	start, end := t.ZoneBounds()
	switch {
	case shown.After(wall): // behind the gap
		return start, gap(start) < 24*time.Hour
	case shown.Before(wall): // before the gap
		return end, gap(end) < 24*time.Hour
	case start.IsZero():
		return t, true
	}
	_, before := start.Add(-time.Nanosecond).In(zone).Zone()
	if first := time.Unix(wall.Unix()-int64(before), 0); first.Before(start) && first.Before(t) {
		return first.In(zone), true
	}
	return t, true
}

// gap is by how much the wall clock jumps forward at a transition.
func gap(at time.Time) time.Duration {
	_, after := at.Zone()
	_, before := at.Add(-time.Nanosecond).Zone()
	return time.Duration(after-before) * time.Second
}
