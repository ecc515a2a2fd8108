package backup

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func TestHealthWarns(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	h := s.handler(t)
	codes := func() (codes []string) {
		t.Helper()
		health, err := h.Health(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range health.Warnings {
			codes = append(codes, w.Code)
		}
		return codes
	}
	if got := codes(); !slices.Equal(got, []string{"none", "unverified"}) {
		t.Errorf("before the first: %v", got)
	}
	s.backup(t, h)
	if got := codes(); len(got) != 0 {
		t.Errorf("after it: %v", got)
	}
	s.clock.now = s.clock.now.Add(27 * time.Hour)
	if got := codes(); !slices.Equal(got, []string{"old"}) {
		t.Errorf("a day later: %v", got)
	}
	s.MustExec("DROP TABLE cache")
	s.MustExec("DELETE FROM posts WHERE id > 2")
	if err := os.Remove(filepath.Join(s.files, "big.bin")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(s.files, "news/ü 1.jpg")); err != nil {
		t.Fatal(err)
	}
	s.backup(t, h)
	if got := codes(); !slices.Contains(got, "table") || !slices.Contains(got, "rows") {
		t.Errorf("after a loss: %v", got)
	}
	h.c.Options.Verify = manifest.LevelNone
	for range 9 * 24 {
		s.clock.now = s.clock.now.Add(time.Hour)
	}
	s.backup(t, h)
	if got := codes(); !slices.Contains(got, "unverified") {
		t.Errorf("long unverified: %v", got)
	}
}
