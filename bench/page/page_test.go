package page_test

import (
	"os"
	"path/filepath"
	"testing"

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
