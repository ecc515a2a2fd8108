package jobs_test

import (
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]jobs.Rate{"10/s": {Starts: 10, Per: time.Second},
		" 600 / h ": {Starts: 600, Per: time.Hour}, "5/30s": {Starts: 5, Per: 30 * time.Second},
		"1000/d": {Starts: 1000, Per: 24 * time.Hour}, "1/minute": {Starts: 1, Per: time.Minute}} {
		got, err := jobs.ParseRate(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := jobs.ParseRate(got.String()); err != nil || again != got {
			t.Errorf("%q is shown as %q, which is read as %+v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "10", "s/10", "0/s", "-1/s", "1001/s", "1/500ms", "1/25h", "1/1500ms", "1/s/s"} {
		if got, err := jobs.ParseRate(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
