package sitemap

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

func newStage(t *testing.T) *os.Root {
	t.Helper()
	stage, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stage.Close() })
	return stage
}

func stagedFile(t *testing.T, stage *os.Root, name string) *os.File {
	t.Helper()
	f, err := stage.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("<urlset/>"); err != nil {
		t.Fatal(err)
	}
	return f
}

// A map may have 50,000 files, a process often 1,024 open ones.
func TestFewFilesAreOpenAtOnce(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the open files of a process are listed by Linux alone")
	}
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	stage := newStage(t)
	before, most := open(), 0
	s := newSealer(stage)
	for i := range 1500 {
		name := fmt.Sprintf("part-%d", i)
		if err := s.take(stagedFile(t, stage, name), name, true); err != nil {
			t.Fatal(err)
		}
		most = max(most, open()-before)
	}
	if err := s.done(); err != nil {
		t.Fatal(err)
	}
	if limit := sealers*(together+3) + 8; most > limit {
		t.Errorf("%d files were open at once, more than %d", most, limit)
	}
	if left := open(); left > before {
		t.Errorf("%d files are left open", left-before)
	}
}

// What cannot reach the disk is not published, also when the file is one of few.
func TestAFileThatDoesNotReachTheDiskIsAnError(t *testing.T) {
	stage := newStage(t)
	for _, n := range []int{1, together, together + 1} {
		s := newSealer(stage)
		for i := range n {
			name := fmt.Sprintf("part-%d-%d", n, i)
			f := stagedFile(t, stage, name)
			if i == n-1 {
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
			}
			_ = s.take(f, name, false) // it may say so already; done says it in any case
		}
		if err := s.done(); err == nil || !strings.Contains(err.Error(), "sync ") {
			t.Errorf("%d files: got %v, want that the last could not be synced", n, err)
		}
	}
}
