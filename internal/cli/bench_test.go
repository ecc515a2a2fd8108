package cli

import (
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/measure"
)

// Every figure that is promised is there and is one.
func TestBenchMeasuresWhatItSays(t *testing.T) {
	r := call(t, nil, "bench", "--json", "--jobs", "200", "--slots", "4", "--probes", "5", "--depth", "50,100",
		"--idle", "1s")
	want(t, r, 0)
	said := answer[struct{ Figures []measure.Figure }](t, r)
	for _, name := range []string{"enqueue one by one, 1 caller", "enqueue one by one, 10 callers",
		"enqueue by the thousand", "worked off, 4 slots",
		"by an idle worker, median", "claim over 50 waiting", "claim over 100 waiting", "and occupies, resident",
		"memory, resident"} {
		found := false
		for _, f := range said.Figures {
			if strings.Contains(f.Name, name) {
				found = f.Value > 0
			}
		}
		if !found {
			t.Errorf("no figure %q above 0 in %+v", name, said.Figures)
		}
	}
	if !strings.Contains(r.out, "an idle worker asks") {
		t.Error("it does not say what an idle worker asks")
	}
	want(t, call(t, nil, "bench", "--jobs", "50", "--probes", "1", "--idle", "0", "--depth", "100,50"), 2, "counts up")
}
