package analytics

import "testing"

func TestDaysAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]DateRange{
		"2026-03-29":             {"2026-03-29", "2026-03-29"},
		"2026-01-30..2026-02-02": {"2026-01-30", "2026-02-02"},
		"2026-02":                {"2026-02-01", "2026-02-28"},
		"2024":                   {"2024-01-01", "2024-12-31"},
		"2026-W01":               {"2025-12-29", "2026-01-04"}, // the year's first Thursday is 1 January
		"2026-W53":               {"2026-12-28", "2027-01-03"},
	} {
		if got, err := ParseDays(text); err != nil || got != want {
			t.Errorf("%s is %v (%v), want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "..", "2026-02-30", "2026-13", "2025-W53", "2026-W00", "2026-02-02..2026-02-01",
		"last week"} {
		if got, err := ParseDays(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}
