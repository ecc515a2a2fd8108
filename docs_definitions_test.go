package cmsjobs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/testgolden"
)

const (
	beginFigures = "<!-- figures: made by a test -->\n"
	endFigures   = "<!-- figures: end -->\n"
)

// TestFiguresAreDocumented compares the table of definitions in docs/admin.md
// with the list in the code; -update writes it.
func TestFiguresAreDocumented(t *testing.T) {
	page := read(t, "docs/admin.md")
	before, rest, begins := strings.Cut(page, beginFigures)
	_, after, ends := strings.Cut(rest, endFigures)
	if !begins || !ends {
		t.Fatal("docs/admin.md has no place for the definitions of figures")
	}
	var table strings.Builder
	table.WriteString("| figure | what is counted | shown |\n|---|---|---|\n")
	for _, f := range jobs.Figures() {
		fmt.Fprintf(&table, "| %s | %s | %s |\n", f.Name, f.Counts, f.Shown)
	}
	want := before + beginFigures + table.String() + endFigures + after
	testgolden.Check(t, "docs/admin.md", []byte(want))
}
