package page_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/bench/page"
)

func TestReplaceKeepsTheRestOfThePage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	old := "# Page\n<!-- one: begin (make one writes this) -->\nold\n<!-- one: end -->\n<!-- two: begin " +
		"-->\nstays\n<!-- two: end -->\nend\n"
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if section, err := page.Section(path, "one"); err != nil || section != "old\n" {
		t.Errorf("the section is %q, %v", section, err)
	}
	if err := page.Replace(path, "one", "new\n\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "# Page\n<!-- one: begin (make one writes this) -->\nnew\n<!-- one: end -->\n<!-- two: begin " +
		"-->\nstays\n<!-- two: end -->\nend\n"
	if string(got) != want {
		t.Errorf("the page is\n%s", got)
	}
	if err := page.Replace(path, "three", "x"); err == nil {
		t.Error("a section that is not there was replaced")
	}
}

func TestFiguresOfAPageWaitForAQuietMachine(t *testing.T) {
	loads := []float64{3.2, 1.6, 1.4, 9}
	next := func() (float64, error) {
		now := loads[0]
		loads = loads[1:]
		return now, nil
	}
	if err := page.AwaitQuiet(t.Context(), next, nil); err != nil || len(loads) != 1 {
		t.Errorf("%v, with %v left to read", err, loads)
	}
	over := make(chan time.Time)
	close(over)
	loads = []float64{1.5, 1.5}
	if err := page.AwaitQuiet(t.Context(), next, over); err == nil || !strings.Contains(err.Error(), "1.50") {
		t.Errorf("a busy machine: %v", err)
	}
}
