package testgolden_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/testgolden"
)

// probe counts what Check reports.
type probe struct {
	testing.TB
	failed bool
}

func (p *probe) Helper()               {}
func (p *probe) Errorf(string, ...any) { p.failed = true }

func TestCheckComparesWithTheFile(t *testing.T) {
	if testgolden.Updating() {
		t.Skip("it compares nothing with -update")
	}
	path := filepath.Join(t.TempDir(), "page.golden")
	if err := os.WriteFile(path, []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, differs := range map[string]bool{"a\n": false, "b\n": true, "": true} {
		p := &probe{TB: t}
		testgolden.Check(p, path, []byte(text))
		if p.failed != differs {
			t.Errorf("%q: reported %v, want %v", text, p.failed, differs)
		}
	}
}
