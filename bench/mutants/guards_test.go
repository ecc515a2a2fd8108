package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A guard whose text was changed, or whose test was renamed, is noticed at once
// and not when mutants run the next time.
func TestEveryGuardIsThere(t *testing.T) {
	t.Chdir("../..")
	promises := map[string]bool{}
	for _, g := range guards {
		promises[g.promise] = true
		if _, err := g.remove(); err != nil {
			t.Errorf("%s, %s: %v", g.promise, g.name, err)
		}
		files, err := filepath.Glob(filepath.Join(g.in, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(text), "\nfunc "+g.test+"(t *testing.T)")
		}
		if !found {
			t.Errorf("%s, %s: %s has no test %s", g.promise, g.name, g.in, g.test)
		}
	}
	for n := 1; n <= 14; n++ {
		if !promises[fmt.Sprint("P", n)] {
			t.Errorf("P%d has no guard", n)
		}
	}
}

func TestTheJudgeTellsAnAssertionFromATimeLimit(t *testing.T) {
	for want, said := range map[outcome]string{
		held:     "=== RUN   TestX\n    x_test.go:12: it is lost\n--- FAIL: TestX (0.1s)\nFAIL\n",
		hung:     "=== RUN   TestX\npanic: test timed out after 1m0s\n\n    x_test.go:12: it is lost\nFAIL\n",
		panicked: "=== RUN   TestX\n--- FAIL: TestX (0.1s)\npanic: nil map\nFAIL\n",
		unbuilt:  "FAIL\tx [build failed]\nFAIL\n",
	} {
		if got := judge(said, false); got != want {
			t.Errorf("%q is judged %q, want %q", said, got, want)
		}
	}
	for want, said := range map[outcome]string{
		missing: "=== RUN   TestX\n--- PASS: TestX (0.1s)\nok\n",
		skipped: "=== RUN   TestX\n--- SKIP: TestX (0.1s)\nok\n",
		// it has no such subtest
		unbuilt: "=== RUN   TestX\n--- PASS: TestX (0.0s)\ntesting: warning: no tests to run\nok\n",
	} {
		if got := judge(said, true); got != want {
			t.Errorf("%q is judged %q, want %q", said, got, want)
		}
	}
}

// A run of some guards keeps what is known of the others, and forgets guards
// that are no more.
func TestTheTableKeepsWhatIsKnown(t *testing.T) {
	day := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	first := results{}
	for _, g := range guards[1:] {
		first.note(trialResult{guard: g, outcome: held}, day)
	}
	first["| P1 | one that is gone since, `x.go` | `TestX` "] = held.on("2026-01-02")
	second := read(first.report())
	second.note(trialResult{guard: guards[1], outcome: missing}, day.AddDate(0, 0, 1))
	text := second.report()
	for want, n := range map[string]int{
		guards[0].row() + "not yet run |  |":                            1,
		guards[1].row() + "**passes** | 2026-01-03 |":                   1,
		"fails | 2026-01-02 |":                                          len(guards) - 2,
		"gone since":                                                    0,
		fmt.Sprintf("guards, %d held, 1 not yet run.\n", len(guards)-2): 1,
	} {
		if got := strings.Count(text, want); got != n {
			t.Errorf("%q stands %d times, want %d:\n%s", want, got, n, text)
		}
	}
}
