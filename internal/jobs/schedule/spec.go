package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Spec is when an entry is due: a cron expression read as wall-clock time.
type Spec struct {
	wall cron.Schedule // asked with wall-clock times that are written as UTC
	// hourly entries are due in both passes of an hour that comes twice.
	hourly bool
	every  time.Duration // of "@every", counted from the Unix epoch
}

// allHours are the bits of an hour field that leaves no hour out.
const allHours = 1<<24 - 1

// ParseSpec reads five fields (minute hour day month weekday), @hourly, @daily,
// @weekly, @monthly, @yearly, or @every with whole seconds.
func ParseSpec(expression string) (Spec, error) {
	expression = strings.TrimSpace(expression)
	if strings.Contains(expression, "TZ=") {
		return Spec{}, fmt.Errorf("the zone does not belong into the expression %q: schedules run in the site's zone", expression)
	}
	parsed, err := cron.ParseStandard(expression)
	if err != nil {
		return Spec{}, fmt.Errorf("%q is no cron expression: %w", expression, err)
	}
	switch p := parsed.(type) {
	case *cron.SpecSchedule:
		p.Location = time.UTC
		if p.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
			return Spec{}, fmt.Errorf("%q is never due", expression)
		}
		return Spec{wall: p, hourly: p.Hour&allHours == allHours}, nil
	case cron.ConstantDelaySchedule:
		return Spec{every: p.Delay}, nil
	}
	return Spec{}, fmt.Errorf("%q is not understood", expression)
}

// widest is more than any zone ever moved its clocks.
const widest = 25 * time.Hour

// Next is the first tick after t in a zone.
func (s Spec) Next(t time.Time, zone *time.Location) time.Time {
	if s.every > 0 {
		return time.Unix(0, 0).Add(t.Sub(time.Unix(0, 0)).Truncate(s.every) + s.every).In(zone)
	}
	from := wallOf(t, zone)
	if s.hourly && changes(t, zone) { // the second pass of an earlier wall time may be still to come
		from = from.Add(-widest)
	}
	var best time.Time
	for wall := s.wall.Next(from); !wall.IsZero(); wall = s.wall.Next(wall) {
		first, second, ok := instants(wall, zone)
		if !ok {
			continue
		}
		if !best.IsZero() && !first.Before(best) {
			break
		}
		for _, at := range []time.Time{first, second} {
			if (at.Equal(first) || s.hourly) && at.After(t) && (best.IsZero() || at.Before(best)) {
				best = at
			}
		}
	}
	return best
}

// Between lists the ticks after from and not after to, oldest first.
func (s Spec) Between(from, to time.Time, zone *time.Location) []time.Time {
	var ticks []time.Time
	for t := s.Next(from, zone); !t.IsZero() && !t.After(to); t = s.Next(t, zone) {
		ticks = append(ticks, t)
	}
	return ticks
}

// Last is the newest tick after from and not after to; zero when there is none.
func (s Spec) Last(from, to time.Time, zone *time.Location) time.Time {
	for span := time.Hour; ; span *= 8 {
		start := to.Add(-span)
		if start.Before(from) {
			start = from
		}
		if ticks := s.Between(start, to, zone); len(ticks) > 0 {
			return ticks[len(ticks)-1]
		}
		if !start.After(from) {
			return time.Time{}
		}
	}
}

// wallOf is what the clock on the wall shows, written as UTC so that it can be
// counted with.
func wallOf(t time.Time, zone *time.Location) time.Time {
	_, offset := t.In(zone).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

func offsetAt(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// changes says whether the zone moves its clocks near t.
func changes(t time.Time, zone *time.Location) bool {
	offset := offsetAt(t, zone)
	return offsetAt(t.Add(-widest), zone) != offset || offsetAt(t.Add(widest), zone) != offset
}

// instants are the moments at which the wall showed a time: usually one (first
// and second are equal), two where clocks were set back. A time that was left
// out is the first instant after the gap; a whole day that a zone left out
// (Samoa, 30 December 2011) never was, and ok is false.
func instants(wall time.Time, zone *time.Location) (first, second time.Time, ok bool) {
	// A zone is at most 14 hours ahead of UTC and 12 behind it.
	before, after := wall.Add(-15*time.Hour), wall.Add(13*time.Hour)
	a, b := wall.Add(-offsetAt(before, zone)), wall.Add(-offsetAt(after, zone))
	aShown, bShown := wallOf(a, zone).Equal(wall), wallOf(b, zone).Equal(wall)
	switch {
	case aShown && bShown && b.Before(a):
		a, b = b, a
	case aShown && !bShown:
		b = a
	case bShown && !aShown:
		a = b
	case !aShown && !bShown:
		_, end := before.In(zone).ZoneBounds()
		gap := offsetAt(end, zone) - offsetAt(end.Add(-time.Second), zone)
		return end.In(zone), end.In(zone), gap < 24*time.Hour
	}
	return a.In(zone), b.In(zone), true
}
