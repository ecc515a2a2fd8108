package spool

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// What is added is read back, also by several readers at once, and takes less.
func TestPartsAreReadBack(t *testing.T) {
	name := filepath.Join(t.TempDir(), "parts")
	s, err := Create(name)
	if err != nil {
		t.Fatal(err)
	}
	contents := map[string][]byte{"000001.sql": []byte("-- head\n"), "000002-posts.sql": bytes.Repeat([]byte("row,"), 600_000)}
	for _, name := range []string{"000001.sql", "000002-posts.sql"} {
		want := sha256.Sum256(contents[name])
		if sum, err := s.Add("database/"+name, contents[name]); err != nil || sum != hex.EncodeToString(want[:]) {
			t.Errorf("%s: %s, %v", name, sum, err)
		}
	}
	if _, err := s.Add("routines/000003.sql", []byte("DELIMITER ;;\n")); err != nil {
		t.Fatal(err)
	}
	if s.Parts() != 3 || s.Bytes() != 2_400_021 || s.Size() >= 100_000 {
		t.Errorf("%d parts of %d bytes take %d", s.Parts(), s.Bytes(), s.Size())
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 || info.Size() != s.Size() {
		t.Errorf("the file is %v, %v", info, err)
	}
	var names []string
	source := s.Source("database/")
	var readers sync.WaitGroup
	for f, err := range source.Files(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, f.Name)
		readers.Go(func() {
			opened, err := source.Open(t.Context(), f.Name)
			if err != nil {
				t.Error(err)
				return
			}
			is, statErr := opened.Stat()
			content, err := io.ReadAll(opened)
			if err = errors.Join(err, statErr, opened.Close()); err != nil || !bytes.Equal(content, contents[f.Name]) ||
				is != f {
				t.Errorf("%s: %d bytes, %+v, %v", f.Name, len(content), is, err)
			}
		})
	}
	readers.Wait()
	if !slices.Equal(names, []string{"000001.sql", "000002-posts.sql"}) {
		t.Errorf("%v", names)
	}
	if _, err := source.Open(t.Context(), "000003.sql"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a part of another folder: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A part that is larger than any of a dump is refused, and a disk's fault is said.
func TestWhatCannotBeKeptIsRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "parts")
	s, err := Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Add("database/000001.sql", make([]byte, maxPart+1)); err == nil {
		t.Error("a part without a bound is taken")
	}
	if _, err := Create(name); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that is there is written over: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Add("database/000001.sql", []byte("a row")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a write that fails: %v", err)
	}
}
