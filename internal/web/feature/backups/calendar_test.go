package backups

import (
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

// TestTheCalendarShowsTheNewestBackupOfADay has a day with two backups, one without,
// and days for which none can be expected.
func TestTheCalendarShowsTheNewestBackupOfADay(t *testing.T) {
	at := func(text string) time.Time {
		parsed, err := time.Parse("2006-01-02 15:04", text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	now := at("2026-11-21 12:00") // a Saturday
	days := calendar(locale.Printer{}, now, []Backup{
		{ID: "late", CreatedAt: at("2026-11-18 23:59"), Status: "partial"},
		{ID: "early", CreatedAt: at("2026-11-18 02:00"), Status: "complete"},
		{ID: "new", CreatedAt: at("2026-11-20 02:00"), Status: "complete"},
		{ID: "bad", CreatedAt: at("2026-11-16 00:00"), Status: "failed"},
		{ID: "ancient", CreatedAt: at("2025-01-01 00:00"), Status: "complete"}})
	if len(days) != 35 || days[0].At.Weekday() != time.Monday || !days[33].Today {
		t.Fatalf("%d days from %s; today is %+v", len(days), days[0].At, days[33])
	}
	for i, want := range map[int]string{28: "fail bad", 29: "none ", 30: "part late", 31: "none ", 32: "ok new",
		33: "none ", 34: "out ", 0: "none "} {
		if got := days[i].Class + " " + days[i].ID; got != want {
			t.Errorf("%s is %q, not %q", days[i].At.Format("2006-01-02"), got, want)
		}
	}
	if days[30].Count != 2 {
		t.Errorf("%d backups on a day with two", days[30].Count)
	}
	if days = calendar(locale.Printer{}, now, []Backup{{CreatedAt: at("2026-11-20 02:00")}}); days[31].Class != "out" {
		t.Errorf("the day before the first backup is %q", days[31].Class)
	}
	if calendar(locale.Printer{}, now, nil) != nil {
		t.Error("a calendar without backups")
	}
}
