package schedule

import (
	"testing"
	"time"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Skipf("no zone %s here: %v", name, err)
	}
	return z
}

// A daily entry runs exactly once on every calendar day, in every zone, also
// when its time does not exist or exists twice.
func TestADailyEntryRunsOnceOnEveryCalendarDay(t *testing.T) {
	for _, name := range []string{"UTC", "America/New_York", "Asia/Ho_Chi_Minh", "Australia/Lord_Howe",
		"Europe/Berlin", "Africa/Cairo", "America/Sao_Paulo",
		"America/Havana", "Asia/Tehran", "Pacific/Auckland", "America/Santiago", "Africa/Casablanca", "Asia/Beirut",
		"America/St_Johns", "Antarctica/Troll"} {
		z := zone(t, name)
		for _, expression := range []string{"0 2 * * *", "0 0 * * *", "15 2 * * *", "30 1 * * *", "45 23 * * *",
			"0 3 * * *"} {
			c, err := ParseCalendar(expression)
			if err != nil {
				t.Fatal(err)
			}
			from := time.Date(2015, 1, 1, 0, 0, 0, 0, z)
			days := map[string]int{}
			last := time.Time{}
			for _, tick := range c.Between(from.Add(-time.Second), from.AddDate(12, 0, 0).Add(-time.Second), z) {
				if !tick.After(last) {
					t.Fatalf("%s %s: %v comes after %v", name, expression, tick, last)
				}
				last = tick
				days[tick.In(z).Format(time.DateOnly)]++
			}
			for day := from; day.Before(from.AddDate(12, 0, 0)); day = day.AddDate(0, 0, 1) {
				if n := days[day.Format(time.DateOnly)]; n != 1 {
					t.Errorf("%s %s: %d ticks on %s", name, expression, n, day.Format(time.DateOnly))
				}
			}
		}
	}
}

func TestTimesInGapAndFold(t *testing.T) {
	for _, c := range []struct{ zone, expression, day, want string }{
		// does not exist: first instant after
		{"America/New_York", "30 2 * * *", "2026-03-08", "2026-03-08T03:00:00-04:00"},
		{"America/New_York", "30 1 * * *", "2026-11-01", "2026-11-01T01:30:00-04:00"}, // comes twice: the first
		{"Europe/Berlin", "0 2 * * *", "2026-03-29", "2026-03-29T03:00:00+02:00"},
		{"Europe/Berlin", "0 2 * * *", "2026-10-25", "2026-10-25T02:00:00+02:00"},
		{"Australia/Lord_Howe", "15 2 * * *", "2026-10-04", "2026-10-04T02:30:00+11:00"}, // half an hour's gap
		{"Australia/Lord_Howe", "45 1 * * *", "2026-04-05", "2026-04-05T01:45:00+11:00"},
		{"Africa/Cairo", "0 0 * * *", "2026-04-24", "2026-04-24T01:00:00+03:00"}, // the gap is at midnight
		{"Asia/Ho_Chi_Minh", "0 2 * * *", "2026-03-29", "2026-03-29T02:00:00+07:00"},
	} {
		z := zone(t, c.zone)
		calendar, err := ParseCalendar(c.expression)
		if err != nil {
			t.Fatal(err)
		}
		start, err := time.ParseInLocation(time.DateOnly, c.day, z)
		if err != nil {
			t.Fatal(err)
		}
		ticks := calendar.Between(start.Add(-time.Minute), start.Add(20*time.Hour), z)
		if len(ticks) != 1 || ticks[0].In(z).Format(time.RFC3339) != c.want {
			t.Errorf("%s %s on %s: %v, want %s", c.zone, c.expression, c.day, ticks, c.want)
		}
	}
}

func TestEntriesOfEveryHourFollowRealTime(t *testing.T) {
	z := zone(t, "America/New_York")
	for _, c := range []struct {
		expression, day string
		want            int
	}{
		{"0 * * * *", "2026-03-08", 23}, {"0 * * * *", "2026-11-01", 25}, {"0 * * * *", "2026-06-01", 24},
		{"*/5 * * * *", "2026-03-08", 23 * 12}, {"*/5 * * * *", "2026-11-01", 25 * 12},
	} {
		calendar, err := ParseCalendar(c.expression)
		if err != nil {
			t.Fatal(err)
		}
		start, err := time.ParseInLocation(time.DateOnly, c.day, z)
		if err != nil {
			t.Fatal(err)
		}
		ticks := calendar.Between(start.Add(-time.Nanosecond), start.AddDate(0, 0, 1).Add(-time.Nanosecond), z)
		if len(ticks) != c.want {
			t.Errorf("%s on %s: %d ticks, want %d", c.expression, c.day, len(ticks), c.want)
		}
	}
}

func TestADayThatAZoneLeavesOutHasNoTick(t *testing.T) {
	z := zone(t, "Pacific/Apia") // 30 December 2011 did not happen
	c, err := ParseCalendar("0 2 * * *")
	if err != nil {
		t.Fatal(err)
	}
	ticks := c.Between(time.Date(2011, 12, 29, 0, 0, 0, 0, z), time.Date(2011, 12, 31, 12, 0, 0, 0, z), z)
	if len(ticks) != 2 || ticks[1].In(z).Day() != 31 {
		t.Errorf("%v", ticks)
	}
}

// Whatever the cuts, the parts of a span hold the ticks of the whole.
func TestSpansAddUp(t *testing.T) {
	z := zone(t, "Australia/Lord_Howe")
	for _, expression := range []string{"0 2 * * *", "*/7 * * * *", "15 */6 * * *", "0 0 1 * 1", "@every 37m",
		"@hourly"} {
		c, err := ParseCalendar(expression)
		if err != nil {
			t.Fatal(err)
		}
		from := time.Date(2026, 9, 30, 23, 0, 0, 0, time.UTC)
		until := from.AddDate(0, 0, 9)
		whole := c.Between(from, until, z)
		var parts []time.Time
		for at := from; at.Before(until); {
			next := at.Add(97 * time.Minute)
			if next.After(until) {
				next = until
			}
			parts = append(parts, c.Between(at, next, z)...)
			at = next
		}
		if len(whole) != len(parts) {
			t.Errorf("%s: %d ticks in the whole, %d in its parts", expression, len(whole), len(parts))
		}
	}
}

func TestExpressionsThatCannotBe(t *testing.T) {
	for _, bad := range []string{"", "every day", "61 * * * *", "* * * *", "0 0 31 2", "TZ=Asia/Tokyo 0 0 * * *"} {
		if _, err := ParseCalendar(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	never, err := ParseCalendar("0 0 30 2 *")
	if err != nil {
		t.Fatal(err)
	}
	if ticks := never.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.UTC, 1); len(ticks) != 0 {
		t.Errorf("30 February comes at %v", ticks)
	}
}

func FuzzParseCalendar(f *testing.F) {
	f.Add("0 2 * * *")
	f.Add("@every 1h")
	f.Add("*/5 1-3,7 1 JAN-MAR MON")
	f.Fuzz(func(t *testing.T, expression string) {
		c, err := ParseCalendar(expression)
		if err != nil {
			return
		}
		from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		last := from
		for _, tick := range c.Between(from, from.Add(50*time.Hour), time.UTC) {
			if !tick.After(last) {
				t.Fatalf("%q: %v after %v", expression, tick, last)
			}
			last = tick
		}
	})
}
