package display_test

import (
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/display"
)

func TestSprintfHasTheFormOfTheNumber(t *testing.T) {
	for want, got := range map[string]string{
		"0 jobs wait":                  display.Sprintf("%d {job waits|jobs wait}", 0),
		"1 job waits":                  display.Sprintf("%d {job waits|jobs wait}", 1),
		"2 jobs wait":                  display.Sprintf("%d {job waits|jobs wait}", 2),
		"1 of 2 jobs":                  display.Sprintf("%d of %d {job|jobs}", 1, 2),
		"50 % of 1 run":                display.Sprintf("50 %% of %d {run|runs}", 1),
		"1 job, as text":               display.Sprintf("%s {job|jobs}, as text", "1"),
		"a {brace that is not closed":  display.Sprintf("a {brace that is not closed"),
		"default has 01 job, 002 runs": display.Sprintf("%s has %02d {job|jobs}, %03d {run|runs}", "default", 1, 2),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
