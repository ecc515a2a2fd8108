package testgolden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// Updating says that the test runs with -update.
func Updating() bool { return *update }

// Check compares text with the file at path, or writes it there with -update.
func Check(t testing.TB, path string, text []byte) {
	t.Helper()
	if Updating() {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update", err)
	}
	if !bytes.Equal(text, want) {
		t.Errorf("%s differs; run the test with -update (or make golden) and look at the difference. It is now:\n%s",
			path, text)
	}
}
