package timespan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/timespan"
)

// TestWhatIsWrongIsSaid tells lengths that are too long from texts that are no lengths.
func TestWhatIsWrongIsSaid(t *testing.T) {
	for text, want := range map[string]string{
		"100000d": "at most 36500d", "-36501d": "at most 36500d", "1e999d": "at most 36500d",
		"99999999999h": "at most 36500d", "876001h": "at most 36500d", "36500d1h": "at most 36500d",
		"9999999999999999999s": "at most 36500d",
		"":                     "is not a length", "3": "is not a length", "d": "is not a length",
		"1d2": "is not a length", "NaNd": "is not a length", "soon": "is not a length",
	} {
		if d, err := timespan.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v; want %q", text, d, err, want)
		}
	}
	for text, want := range map[string]time.Duration{"0": 0, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour,
		"36500d": 876000 * time.Hour, "-1.5h": -90 * time.Minute} {
		if d, err := timespan.Parse(text); err != nil || d != want {
			t.Errorf("%q: %s, %v; want %s", text, d, err, want)
		}
	}
}
