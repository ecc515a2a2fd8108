package storage

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is staged is unknown to everybody until it is published, and gone when it is discarded.
func TestStagedFilesAreUnknownUntilTheyArePublished(t *testing.T) {
	l := newLocal(t)
	put(t, l, "a/old", "old")
	stage := func(batch string) {
		t.Helper()
		if err := l.Prepare(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		for key, content := range map[string]string{"a/old": "new", "b/c/added": "new", "top": "new"} {
			if err := l.Stage(t.Context(), batch, key, strings.NewReader(content), true); err != nil {
				t.Fatal(err)
			}
		}
	}
	stage("x1")
	if got := keys(t, l, ""); len(got) != 1 || read(t, l, "a/old") != "old" {
		t.Errorf("there are %v", got)
	}
	if err := l.Discard(t.Context(), "x1"); err != nil {
		t.Fatal(err)
	}
	if err := l.Publish(t.Context(), "x1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("what was discarded is published: %v", err)
	}
	stage("x2")
	for range 2 {
		if err := l.Publish(t.Context(), "x2"); err != nil {
			t.Fatal(err)
		}
	}
	if got := keys(t, l, ""); len(got) != 3 || read(t, l, "a/old") != "new" || read(t, l, "b/c/added") != "new" {
		t.Errorf("there are %v", got)
	}
	if err := l.Discard(t.Context(), "x2"); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(l.dir, tempPrefix+"*")); len(left) > 0 || err != nil {
		t.Errorf("left over: %v, %v", left, err)
	}
}

func TestAFileThatCannotBeReplacedIsRefusedWhenItIsStaged(t *testing.T) {
	l := newLocal(t)
	outside := t.TempDir()
	put(t, l, "folder/f", "x")
	if err := os.Symlink(outside, filepath.Join(l.dir, "out")); err != nil {
		t.Fatal(err)
	}
	if err := l.Prepare(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"folder", "out/f", "../f", "folder/f/g"} {
		if err := l.Stage(t.Context(), "x", key, strings.NewReader("x"), true); err == nil {
			t.Errorf("%s is staged", key)
		}
	}
}
