package display_test

import (
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/display"
)

// A moment that nobody knows is no age of 56 years: PHP's rows may have 0 for it.
func TestAMomentInWords(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for want, at := range map[string]time.Time{"–": {}, "3m ago": now.Add(-3 * time.Minute), "in 2h": now.Add(2 * time.Hour),
		"5d ago": now.AddDate(0, 0, -5)} {
		if got := display.Ago(at, now); got != want {
			t.Errorf("%s is %q, want %q", at, got, want)
		}
	}
	if got := display.Ago(time.Unix(0, 0), now); got != "–" {
		t.Errorf("Unix 0 is %q", got)
	}
}
