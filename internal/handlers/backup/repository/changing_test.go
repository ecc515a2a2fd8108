package repository

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// disturbed calls then once something of a file was read.
type disturbed struct {
	Source
	name  string
	then  func()
	opens int
}

func (d *disturbed) Open(ctx context.Context, name string) (OpenFile, error) {
	f, err := d.Source.Open(ctx, name)
	if name != d.name || err != nil {
		return f, err
	}
	d.opens++
	return &disturbedFile{f, d.then}, nil
}

type disturbedFile struct {
	OpenFile
	then func()
}

func (f *disturbedFile) Read(p []byte) (int, error) {
	n, err := f.OpenFile.Read(p[:min(len(p), 1000)])
	f.then()
	return n, err
}

// Of a file that changes while it is read, the backup holds what was read, and says
// so; the next backup reads it again.
func TestAFileThatChangesWhileItIsReadIsNamed(t *testing.T) {
	for name, tries := range map[string]int{"uploads/plain.txt": fileTries, "large/smallest": 1} {
		s := newSite(t, 5)
		p := filepath.Join(s.dir, name)
		change := func() { // as another write of the same length does
			if err := os.Chtimes(p, time.Time{}, time.Now()); err != nil {
				t.Error(err)
			}
		}
		q := s.request(t)
		d := &disturbed{Source: q.Sources[0].Source, name: name, then: change}
		q.Sources[0].Source = d
		r := create(t, options(local(t, t.TempDir())))
		report := backup(t, r, q)
		if len(report.Warnings) != 1 || !strings.Contains(report.Warnings[0], "media/"+name+" kept changing") ||
			d.opens != tries {
			t.Errorf("%v, read %d times", report.Warnings, d.opens)
		}
		if v := verify(t, r, VerifyRequest{Level: Contents}); len(v.Problems) != 0 {
			t.Errorf("%+v", v.Problems)
		}
		second := backup(t, r, s.request(t))
		if changed := second.Record.Files - second.Unchanged; changed != 1 {
			t.Errorf("%d files were read", changed)
		}
		same(t, "the second", shot(t, s.dir), restore(t, r, second.Record))
	}
}

// A file may vanish after it was listed, or become something else.
func TestAFileThatVanishesIsNamed(t *testing.T) {
	s := newSite(t, 5)
	q := s.request(t)
	q.Wanted = func(name string) bool { // called between list and open
		if name == "media/empty" {
			if err := os.Remove(filepath.Join(s.dir, "empty")); err != nil {
				t.Error(err)
			}
		}
		if name == "media/a/x" {
			p := filepath.Join(s.dir, "a/x")
			if err := os.Remove(p); err != nil {
				t.Error(err)
			}
			if err := os.Symlink("/etc/passwd", p); err != nil {
				t.Error(err)
			}
		}
		return true
	}
	r := create(t, options(local(t, t.TempDir())))
	report := backup(t, r, q)
	if all := strings.Join(report.Warnings, "\n"); len(report.Warnings) != 2 ||
		!strings.Contains(all, "media/a/x cannot be read") ||
		!strings.Contains(all, "media/empty vanished") || report.Record.Status != Partial {
		t.Errorf("%v", report.Warnings)
	}
	if got := restore(t, r, report.Record); len(got) != int(report.Record.Files) || got["a/x"] != "" {
		t.Errorf("%d files", len(got))
	}
}
