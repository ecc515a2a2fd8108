package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func spec(t testing.TB, expression string) Spec {
	t.Helper()
	s, err := ParseSpec(expression)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every zone that has moved its clocks in a way of its own: what a daily entry
// does on that day, in local time with its offset.
func TestADailyEntryOnTheDaysOnWhichClocksMove(t *testing.T) {
	for _, c := range []struct{ zone, cron, day, want string }{
		{"UTC", "0 2 * * *", "2026-03-29", "02:00 +0000"},
		{"Asia/Ho_Chi_Minh", "0 2 * * *", "2026-03-29", "02:00 +0700"},
		{"Europe/Berlin", "0 2 * * *", "2026-03-29", "03:00 +0200"},        // 02:00 does not exist
		{"Europe/Berlin", "30 2 * * *", "2026-03-29", "03:00 +0200"},       // first instant after the gap
		{"Europe/Berlin", "30 2 * * *", "2026-10-25", "02:30 +0200"},       // twice: the first time
		{"America/New_York", "0 2 * * *", "2026-03-08", "03:00 -0400"},     // gap
		{"America/New_York", "30 1 * * *", "2026-11-01", "01:30 -0400"},    // fold
		{"Australia/Lord_Howe", "15 2 * * *", "2026-10-04", "02:30 +1100"}, // half an hour's gap
		{"Australia/Lord_Howe", "45 1 * * *", "2026-04-05", "01:45 +1100"}, // half an hour's fold
		{"Africa/Cairo", "0 0 * * *", "2026-04-24", "01:00 +0300"},         // no midnight
		{"America/Santiago", "30 0 * * *", "2026-09-06", "01:00 -0300"},    // no midnight
		{"America/Havana", "30 0 * * *", "2026-11-01", "00:30 -0400"},      // midnight's hour twice
		{"Asia/Beirut", "0 0 * * *", "2026-03-29", "01:00 +0300"},
		{"Europe/Dublin", "30 1 * * *", "2026-03-29", "02:00 +0100"}, // negative daylight saving
		{"Africa/Casablanca", "30 2 * * *", "2026-02-15", "02:30 +0100"},
		{"Africa/Casablanca", "30 2 * * *", "2026-03-22", "03:00 +0100"},
		{"America/Nuuk", "30 23 * * *", "2026-03-28", "00:00 -0100"},    // 23:00 does not exist: at once after it
		{"Antarctica/Troll", "30 1 * * *", "2026-03-29", "03:00 +0200"}, // two hours' gap
		{"Asia/Kathmandu", "0 2 * * *", "2026-03-29", "02:00 +0545"},
		{"Pacific/Apia", "0 2 * * *", "2011-12-31", "02:00 +1400"}, // the day after a day that never was
	} {
		z := zone(t, c.zone)
		day, err := time.ParseInLocation(time.DateOnly, c.day, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		// The tick of that calendar day is the one after the day before's.
		before := spec(t, c.cron).Next(day.Add(-40*time.Hour), z)
		for wallOf(before, z).Before(day.Add(-time.Minute)) {
			next := spec(t, c.cron).Next(before, z)
			if !wallOf(next, z).Before(day) {
				before = next
				break
			}
			before = next
		}
		if got := before.Format("15:04 -0700"); got != c.want {
			t.Errorf("%s %q on %s: %s, want %s", c.zone, c.cron, c.day, got, c.want)
		}
	}
}

// Whatever the zone and the time of day: one tick a calendar day that exists,
// over eight years of moved clocks.
func TestADailyEntryRunsOnceOnEveryCalendarDay(t *testing.T) {
	for _, name := range []string{"UTC", "America/New_York", "Asia/Ho_Chi_Minh", "Australia/Lord_Howe", "Europe/Berlin", "Europe/Dublin", "Africa/Cairo",
		"Africa/Casablanca", "America/Santiago", "America/Havana", "America/Sao_Paulo", "Asia/Beirut", "Asia/Tehran", "Antarctica/Troll", "Pacific/Apia"} {
		z := zone(t, name)
		for _, cron := range []string{"0 2 * * *", "15 2 * * *", "0 0 * * *", "30 1 * * *"} {
			s := spec(t, cron)
			from, to := time.Date(2010, 1, 1, 12, 0, 0, 0, z), time.Date(2018, 1, 1, 12, 0, 0, 0, z)
			days := map[string]int{}
			for _, tick := range s.Between(from, to, z) {
				days[tick.Format(time.DateOnly)]++
			}
			want := 0
			last := ""
			for at := from; !at.After(to.Add(-24 * time.Hour)); at = at.Add(time.Hour) { // hour by hour: only days that existed
				date := at.Format(time.DateOnly)
				if date == last || date == from.Format(time.DateOnly) {
					continue
				}
				last = date
				want++
				if days[date] != 1 {
					t.Errorf("%s %q: %d ticks on %s", name, cron, days[date], date)
				}
			}
			if want < 2900 {
				t.Errorf("%s: only %d days were looked at", name, want)
			}
		}
	}
}

func TestEntriesOfEveryHourFollowRealTime(t *testing.T) {
	for _, c := range []struct {
		zone, cron, from string
		hours, want      int
	}{
		{"Europe/Berlin", "0 * * * *", "2026-10-24T22:30:00Z", 4, 4}, // 00:30 … with 02:00 twice
		{"Europe/Berlin", "0 * * * *", "2026-03-28T23:30:00Z", 4, 4}, // with no 02:00
		{"Europe/Berlin", "*/5 * * * *", "2026-10-24T22:58:00Z", 4, 48},
		{"Europe/Berlin", "*/5 * * * *", "2026-03-28T22:58:00Z", 4, 48},
		{"Australia/Lord_Howe", "*/30 * * * *", "2026-04-04T13:10:00Z", 4, 8},
		{"UTC", "@every 90m", "2026-04-04T00:00:00Z", 24, 16},
		{"UTC", "@hourly", "2026-04-04T00:00:00Z", 24, 24},
	} {
		from, err := time.Parse(time.RFC3339, c.from)
		if err != nil {
			t.Fatal(err)
		}
		if got := spec(t, c.cron).Between(from, from.Add(time.Duration(c.hours)*time.Hour), zone(t, c.zone)); len(got) != c.want {
			t.Errorf("%s %q: %d ticks in %d hours, want %d: %v", c.zone, c.cron, len(got), c.hours, c.want, got)
		}
	}
}

func TestExpressionsThatCannotBeMeantAreRefused(t *testing.T) {
	for _, bad := range []string{"", "61 * * * *", "* * *", "0 0 31 2 *", "TZ=Europe/Berlin 0 2 * * *", "@never"} {
		if _, err := ParseSpec(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func FuzzParseSpec(f *testing.F) {
	f.Add("*/5 1-3 * jan mon", int64(1_774_000_000))
	f.Add("0 2 29 2 *", int64(0))
	berlin := zone(f, "Europe/Berlin")
	f.Fuzz(func(t *testing.T, expression string, unix int64) {
		s, err := ParseSpec(expression)
		if err != nil {
			return
		}
		at := time.Unix(unix%4_000_000_000, 0)
		next := s.Next(at, berlin)
		if !next.IsZero() && !next.After(at) {
			t.Fatalf("%q: after %v comes %v", expression, at, next)
		}
	})
}

func TestWhatIsMissedIsCaughtUpByPolicy(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 7, 0, 0, time.UTC)
	show := func(ticks []time.Time) string {
		var words []string
		for _, tick := range ticks {
			words = append(words, tick.Format("02/15:04"))
		}
		return strings.Join(words, " ")
	}
	for _, c := range []struct {
		name   string
		entry  Entry
		since  time.Duration // ago
		run    string
		missed int
	}{
		{"on time", Entry{Cron: "5 * * * *", CatchUp: Skip}, time.Minute * 3, "10/12:05", 0},
		{"too late", Entry{Cron: "4 * * * *", CatchUp: Skip}, time.Hour, "", 1},
		{"latest", Entry{Cron: "*/15 * * * *", MaxAge: 24 * time.Hour}, time.Hour, "10/12:00", 3},
		{"all", Entry{Cron: "*/15 * * * *", CatchUp: All, MaxAge: 24 * time.Hour}, time.Hour, "10/11:15 10/11:30 10/11:45 10/12:00", 0},
		{"all up to 2", Entry{Cron: "*/15 * * * *", CatchUp: All, Limit: 2}, time.Hour, "10/11:45 10/12:00", 2},
		{"too old", Entry{Cron: "0 2 * * *", MaxAge: time.Hour}, 48 * time.Hour, "", 1},
		{"a restart at 02:10", Entry{Cron: "57 11 * * *"}, 24 * time.Hour, "10/11:57", 0},
		{"outside the window", Entry{Cron: "0 * * * *", Window: "01:00-05:00"}, time.Hour, "", 0},
		{"inside the window", Entry{Cron: "0 * * * *", Window: "12:00-13:00"}, time.Hour, "10/12:00", 0},
		{"over midnight", Entry{Cron: "0 * * * *", Window: "22:00-12:08"}, time.Hour, "10/12:00", 0},
		{"a fallback waits", Entry{Cron: "0 * * * *", After: "sitemap.generate"}, 65 * time.Minute, "", 0},
		{"a fallback's turn", Entry{Cron: "5 11 * * *", After: "sitemap.generate"}, 3 * time.Hour, "10/11:05", 0},
	} {
		c.entry.Name = "test"
		l, err := c.entry.check()
		if err != nil {
			t.Fatal(err)
		}
		p := l.due(now.Add(-c.since), now, time.UTC)
		if show(p.run) != c.run || len(p.missed) != c.missed {
			t.Errorf("%s: run %q, missed %v; want %q, %d missed", c.name, show(p.run), p.missed, c.run, c.missed)
		}
	}
}

func TestEntriesThatAreWrongAreNamed(t *testing.T) {
	_, err := New(Config{Entries: []Entry{{Name: "a", Cron: "x"}, {Name: "b", Cron: "@daily", Window: "25:00"}, {Name: "c", Cron: "@daily", CatchUp: "never"},
		{Name: "d", Cron: "@daily"}, {Name: "d", Cron: "@daily"}, {Name: "e", Cron: "@daily", Data: []byte("{")}}})
	for _, name := range []string{`"a"`, `"b"`, `"c"`, `"d" is there twice`, `"e"`} {
		if !strings.Contains(fmt.Sprint(err), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}
