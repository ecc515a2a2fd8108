package media

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// Orphans are found by the names that this site's thumbnails have, and a file
// that only looks a bit like one is left alone.
func TestOrphansAreFoundByTheSitesNames(t *testing.T) {
	small := jpegOf(t, 8, 8)
	for name, c := range map[string]struct {
		template, setting string
		files             []string
		orphans, unwanted int
	}{
		"words": {"", "", []string{"gone-thumb.jpg", "gone-medium.jpg", "gone-large.jpg.webp",
			"house-large.jpg", "a-w640.jpg", "b.jpg"}, 3, 4},
		"the CMS's": {"", "theme", []string{"gone-150x150.jpg", "a-77x77.jpg", "a-thumb.jpg", "gone-medium.jpg"},
			1, 2},
		"of the owner": {"{name}_{w}_{h}.{ext}", "", []string{"gone_150_150.jpg", "gone_300_300.jpg",
			"gone-150x150.jpg", "x_1.jpg"}, 3, 3},
		"one that ends": {"{name}-{size}", "", []string{"gone-small", "gone-medium"}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, jobstest.SQLite, Options{Name: c.template})
			if c.setting != "" {
				s.setting(c.setting, "any")
			}
			s.upload(1, "a.jpg", "image/jpeg", jpegOf(t, 400, 300))
			if _, err := s.run(`{"mediaFileId":1}`, 1); err != nil {
				t.Fatal(err)
			}
			for _, file := range c.files {
				s.write(file, small)
			}
			for _, o := range []CheckOptions{{}, {Unwanted: true}} {
				want := map[bool]int{false: c.orphans, true: c.unwanted}[o.Unwanted]
				report, err := s.handler.Check(t.Context(), o, func(int64, int64) {})
				if err != nil || len(report.Orphans) != want || report.Removed != 0 {
					t.Errorf("unwanted %v: %v, %v; want %d", o.Unwanted, fmt.Sprint(report.Orphans), err, want)
				}
			}
		})
	}
}

// An error names its picture once: the caller does, whatever it is.
func TestAnErrorNamesItsPictureOnce(t *testing.T) {
	s := newSite(t, jobstest.SQLite, Options{})
	s.upload(1, "lost-one.jpg", "image/jpeg", jpegOf(t, 9, 9))
	s.upload(2, "short-one.jpg", "image/jpeg", jpegOf(t, 9, 9)[:40])
	if err := os.Remove(filepath.Join(s.uploads, "lost-one.jpg")); err != nil {
		t.Fatal(err)
	}
	failed := 0
	_, err := s.handler.Regenerate(t.Context(), RegenerateOptions{}, func(p Progress) {
		if failed++; p.Err == nil || strings.Contains(p.Err.Error(), p.URL) {
			t.Errorf("regenerate: %s: %v", p.URL, p.Err)
		}
	})
	if err != nil || failed != 2 {
		t.Fatalf("%d failed, %v", failed, err)
	}
	for id, url := range map[int]string{1: "lost-one.jpg", 2: "short-one.jpg"} {
		_, err := s.run(fmt.Sprintf(`{"mediaFileId":%d}`, id), 3)
		if err == nil || strings.Count(err.Error(), url) != 1 {
			t.Errorf("the job: %v", err)
		}
		if r := s.record(id); r.Error == "" || strings.Contains(r.Error, url) {
			t.Errorf("its row: %q", r.Error)
		}
	}
}
