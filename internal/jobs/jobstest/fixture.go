package jobstest

import (
	"os"
	"path/filepath"
	"testing"
)

// Fixture is the path of a file of a real CMS: its dump or its media. They are
// not part of the project: CMSJOBS_FIXTURES names their folder, by default
// ../shared/fixtures/botble beside the project. The test is skipped where they
// are not.
func Fixture(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("CMSJOBS_FIXTURES")
	if dir == "" {
		dir = filepath.Join(moduleRoot(t), "..", "shared", "fixtures", "botble")
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no fixture %s: set CMSJOBS_FIXTURES to a folder with a real CMS's data", name)
	}
	return path
}

func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
}
