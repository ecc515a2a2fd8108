package backup

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/browse"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// A backup is looked into: what it holds, one file of it, and how it differs from another.
func TestABackupIsBrowsedAndCompared(t *testing.T) {
	for _, form := range []Form{InArchive, InRepository} {
		t.Run(string(form), func(t *testing.T) { testABackupIsBrowsedAndCompared(t, form) })
	}
}

func testABackupIsBrowsedAndCompared(t *testing.T, form Form) {
	s := newSite(t, jobstest.SQLite)
	s.c.Options.Form = form
	h := s.handler(t)
	_, first := s.backup(t, h)
	s.write(t, "a.txt", "changed")
	s.write(t, "news/new.txt", "new")
	if err := os.Remove(filepath.Join(s.files, "big.bin")); err != nil {
		t.Fatal(err)
	}
	s.MustExec("DELETE FROM posts WHERE id > 290")
	_, second := s.backup(t, h)

	c, err := h.Contents(t.Context(), first, []string{"storage/news/**"}, nil)
	if err != nil || len(c.Files) != 1 || c.Files[0].Size != 100_000 || len(c.Folders) != 2 ||
		c.Folders[1] != (browse.Folder{Name: "storage/news", Files: 1, Bytes: 100_000}) {
		t.Errorf("%+v, %v", c, err)
	}
	rows := int64(-1)
	for _, table := range c.Tables {
		if table.Name == "posts" {
			rows = table.Rows
		}
	}
	if rows != 300 {
		t.Errorf("%d posts", rows)
	}
	var file bytes.Buffer
	if n, err := h.File(t.Context(), first, "storage/a.txt", &file, nil); n != 5 || file.String() != "hello" ||
		err != nil {
		t.Errorf("%d bytes, %q, %v", n, &file, err)
	}
	if _, err := h.File(t.Context(), first, "storage/none.txt", &file, nil); !errors.Is(err, browse.ErrNoFile) {
		t.Errorf("a file that is not there: %v", err)
	}
	d, err := h.Compare(t.Context(), first, second, nil)
	if err != nil || d.AddedFiles != 1 || d.GoneFiles != 1 || d.OtherFiles != 1 || d.SameFiles != 1 ||
		len(d.Files) != 3 {
		t.Errorf("%+v, %v", d, err)
	}
	if len(d.Tables) == 0 || d.SameTables == 0 {
		t.Fatalf("%+v", d)
	}
	for _, table := range d.Tables {
		if table.Name == "posts" && (table.Before != 300 || table.After != 290) {
			t.Errorf("%+v", table)
		}
	}
	if err := os.WriteFile(filepath.Join(s.dest, first.Archive), []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := h.File(t.Context(), first, "storage/a.txt", &file, nil); err == nil {
		t.Error("a file of a damaged archive is given out")
	}
}
