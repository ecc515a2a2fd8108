//go:build unix

package storage

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func (l *Local) unfinished(ctx context.Context) ([]string, error) { return l.folders().unfinished(ctx) }

func (s *SFTP) unfinished(ctx context.Context) ([]string, error) { return s.folders().unfinished(ctx) }

// unfinished are the names of files that are still being written.
func (f folders) unfinished(ctx context.Context) (left []string, err error) {
	for info, err := range f.list(ctx, "", temps) {
		if err != nil {
			return nil, err
		}
		left = append(left, info.Key)
	}
	return left, nil
}

func TestModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	l := newLocal(t)
	put(t, l, "private/f", "x")
	if err := l.Put(t.Context(), "public/f", strings.NewReader("x"), PutOptions{Public: true}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{".": 0o700, "private": 0o700, "private/f": 0o600,
		"public/f": 0o644} {
		info, err := os.Stat(filepath.Join(l.dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v (%v)", name, info.Mode().Perm(), want, err)
		}
	}
}

func TestSymlinksAreNoObjects(t *testing.T) {
	l := newLocal(t)
	outside := t.TempDir()
	put(t, l, "real/f", "inside")
	if err := os.WriteFile(filepath.Join(outside, "f"), []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"out": outside, "in": "real", "file": "real/f", "real/up": "../../x"} {
		if err := os.Symlink(target, filepath.Join(l.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"out/f", "in/f", "file", "real/up"} {
		if _, _, err := l.Open(t.Context(), key); err == nil {
			t.Errorf("Open(%s) follows the link", key)
		}
		if err := l.Put(t.Context(), key, strings.NewReader("evil"), PutOptions{}); err == nil {
			t.Errorf("Put(%s) follows the link", key)
		}
	}
	if got := keys(t, l, ""); len(got) != 1 || got[0] != "real/f" {
		t.Errorf("listed are %v", got)
	}
	if got, _ := os.ReadFile(filepath.Join(outside, "f")); string(got) != "outside" {
		t.Errorf("the file outside holds %q", got)
	}
}

func TestAMissingFolderIsNotMade(t *testing.T) {
	if _, err := NewLocal(filepath.Join(t.TempDir(), "unmounted"), LocalOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestSweepRemovesWhatKilledWritersLeft(t *testing.T) {
	l := newLocal(t)
	put(t, l, "a/kept", "x")
	left := filepath.Join(l.dir, "a", tempPrefix+"123")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := l.Sweep(t.Context(), "", time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("a young leftover is swept: %d, %v", n, err)
	}
	if n, err := l.Sweep(t.Context(), "", time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("an old leftover is not swept: %d, %v", n, err)
	}
	if got := read(t, l, "a/kept"); got != "x" {
		t.Errorf("the object holds %q", got)
	}
}

func TestAFullDiskLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	jobstest.SmallDisk(t, dir, "size=1m")
	l, err := NewLocal(dir, LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	put(t, l, "k", "former")
	free, err := l.Free()
	if err != nil || free <= 0 || free > 1<<20 {
		t.Errorf("%d bytes are free, %v", free, err)
	}
	if err := l.Put(t.Context(), "k", bytes.NewReader(make([]byte, 2<<20)), PutOptions{}); !errors.Is(err,
		syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	if got := read(t, l, "k"); got != "former" {
		t.Errorf("the former object holds %.20q", got)
	}
	noLeftovers(t, l)
}

func FuzzCheckKey(f *testing.F) {
	for _, key := range []string{"a", "../a", "/a", "a/./b", "a\x00"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if CheckKey(key) == nil && !filepath.IsLocal(key) {
			t.Errorf("%q leaves the root", key)
		}
	})
}
