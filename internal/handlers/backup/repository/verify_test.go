package repository

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
)

// smallSite has each way in which content is stored.
func smallSite(t testing.TB) *site {
	t.Helper()
	s := newSite(t, 0)
	if err := os.RemoveAll(filepath.Join(s.dir, "large")); err != nil {
		t.Fatal(err)
	}
	s.write(t, "large", append(s.text(20_000), bytes.Repeat([]byte{7}, smallFile)...))
	s.write(t, "noise", s.noise(2000))
	return s
}

// Every region of every file of a repository: whichever bit changes is found, and no
// key is needed for it.
func TestEveryChangedBitIsFound(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		t.Run(fmt.Sprintf("encrypted %v", sealed), func(t *testing.T) {
			o := options(local(t, t.TempDir()))
			if sealed {
				o.Recipients = []age.Recipient{identity(t).Recipient()}
			}
			s := smallSite(t)
			r := create(t, o)
			backup(t, r, s.request(t))
			s.write(t, "more", s.noise(300))
			backup(t, r, s.request(t))
			flips := 0
			for name := range shot(t, r.Place()) {
				flips += flipAll(t, r, name)
			}
			if flips < 300 {
				t.Errorf("only %d bits were changed", flips)
			}
			if v := verify(t, r, VerifyRequest{Level: Bytes}); len(v.Problems) != 0 {
				t.Errorf("nothing is changed now: %+v", v.Problems)
			}
		})
	}
}

// flipAll changes bits of one file: of its first and last bytes, and of 40 regions
// between.
func flipAll(t *testing.T, r *Repository, name string) (flips int) {
	t.Helper()
	p := filepath.Join(r.Place(), name)
	whole, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	var at []int
	for i := range min(16, len(whole)) {
		at = append(at, i, len(whole)-1-i)
	}
	for i := range 40 {
		at = append(at, i*len(whole)/40)
	}
	for i, n := range at {
		changed := bytes.Clone(whole)
		changed[n] ^= 1 << (i % 8)
		if err := os.WriteFile(p, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		v := verify(t, r, VerifyRequest{Level: Bytes})
		if !slices.ContainsFunc(v.Problems, func(p Problem) bool { return p.Key == name }) {
			t.Errorf("a bit of byte %d of the %d of %s is not found: %+v", n, len(whole), name, v.Problems)
		}
		flips++
	}
	if err := os.WriteFile(p, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	return flips
}

// The sizes of objects show without reading them what is cut, longer or gone.
func TestSizesAreCheckedWithoutReading(t *testing.T) {
	s := smallSite(t)
	r := create(t, options(local(t, t.TempDir())))
	b := backup(t, r, s.request(t)).Record
	for name := range b.Objects {
		p := filepath.Join(r.Place(), objectKey(name))
		whole, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for what, content := range map[string][]byte{"shorter": whole[:len(whole)-1],
			"longer": append(bytes.Clone(whole), 0), "empty": {}} {
			if err := os.WriteFile(p, content, 0o600); err != nil {
				t.Fatal(err)
			}
			v := verify(t, r, VerifyRequest{Level: Present})
			if len(v.Problems) != 1 || v.Problems[0].Key != objectKey(name) || !slices.Equal(v.Problems[0].Backups,
				[]string{b.ID}) || v.Read != 0 {
				t.Errorf("%s: %+v", what, v)
			}
		}
		if err := os.WriteFile(p, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheSharesOfAWeekReadEverythingOnce(t *testing.T) {
	s := newSite(t, 30)
	for i := range 40 {
		s.write(t, fmt.Sprintf("more/%d", i), s.noise(smallFile+1+i))
	}
	r := create(t, options(local(t, t.TempDir())))
	b := backup(t, r, s.request(t)).Record
	var read int64
	monday := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	for day := range 7 {
		share := ShareOfDay(monday.AddDate(0, 0, day), 7)
		v := verify(t, r, VerifyRequest{Level: Bytes, Share: share, Of: 7})
		if v.Read == 0 || v.Read == v.Objects || len(v.Problems) != 0 {
			t.Errorf("day %d: %+v", day, v)
		}
		read += v.Read
	}
	if read != int64(len(b.Objects)) {
		t.Errorf("%d of %d objects were read in a week", read, len(b.Objects))
	}
	if _, err := r.Verify(t.Context(), VerifyRequest{Share: 7, Of: 7}); err == nil {
		t.Error("the eighth share of seven is taken")
	}
}

// A writer that stored something else than it read: the bytes are as they were
// stored, and only the contents show it.
func TestContentsAreHeldAgainstWhatWasRead(t *testing.T) {
	s := smallSite(t)
	o := options(local(t, t.TempDir()))
	r := create(t, o)
	b := backup(t, r, s.request(t)).Record
	forged := *b
	forged.Objects = map[string]int64{}
	stored := []byte(strings.Repeat("x", maxCut/2))
	name := objectName(sumOf(stored), newRun(), false)
	s.put(t, r, objectKey(name), stored)
	var entries []Entry
	for e, err := range r.Entries(t.Context(), b) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Name == "media/noise" {
			e.Pieces[0].Object, e.Pieces[0].Offset = name, 0
		}
		for _, p := range e.Pieces {
			forged.Objects[p.Object] = max(b.Objects[p.Object], 1)
		}
		entries = append(entries, e)
	}
	text := manifestOf(entries)
	manifest := objectName(sumOf(text), newRun(), false)
	s.put(t, r, objectKey(manifest), text)
	forged.Manifest = []Piece{{Object: manifest, Stored: int64(len(text)), Length: int64(len(text)), Sum: sumOf(text)}}
	forged.Objects[manifest], forged.Objects[name] = int64(len(text)), int64(len(stored))
	record, err := forged.encode()
	if err != nil {
		t.Fatal(err)
	}
	id := recordID(forged.Started, record)
	s.put(t, r, backupsFolder+id+recordEnd, record)
	if v := verify(t, r, VerifyRequest{Level: Bytes}); len(v.Problems) != 0 {
		t.Errorf("%+v", v.Problems)
	}
	v := verify(t, r, VerifyRequest{Level: Contents})
	if len(v.Problems) != 1 || v.Problems[0].File != "media/noise" || v.Problems[0].Backups[0] != id {
		t.Errorf("%+v", v.Problems)
	}
	forged.ID = id
	into := t.TempDir()
	done, err := r.Restore(t.Context(), RestoreRequest{Backup: &forged, Into: into})
	if err == nil || done.Failures != 1 || done.Failed["media/noise"] == nil {
		t.Errorf("%+v, %v", done, err)
	}
	if _, err := os.Stat(filepath.Join(into, "media/noise")); err == nil {
		t.Error("a damaged file was restored")
	}
}

func (s *site) put(t *testing.T, r *Repository, key string, content []byte) {
	t.Helper()
	p := filepath.Join(r.Place(), key)
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
