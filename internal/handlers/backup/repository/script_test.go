package repository

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
)

// shells that read restore.sh: "" is what the system calls sh.
func shells(t *testing.T, run func(t *testing.T, shell []string)) {
	for _, shell := range [][]string{{"sh"}, {"bash", "--posix"}, {"busybox", "sh"}} {
		t.Run(shell[0], func(t *testing.T) {
			if _, err := exec.LookPath(shell[0]); err != nil {
				t.Skip(err)
			}
			run(t, shell)
		})
	}
}

func script(t *testing.T, shell []string, repository, identity string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), shell[0],
		append(append(shell[1:len(shell):len(shell)], filepath.Join(repository, restoreKey)), args...)...)
	cmd.Env = append(os.Environ(), "AGE_IDENTITY="+identity, "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
}

func TestTheScriptRestoresWithoutThisProgram(t *testing.T) {
	need(t, "zstd", "age")
	both(t, func(t *testing.T, o Options) {
		s := newSite(t, 40)
		r := create(t, o)
		first := backup(t, r, s.request(t)).Record
		was := shot(t, s.dir)
		s.write(t, "uploads/2026/01/more.txt", s.text(5000))
		s.write(t, "uploads/plain.txt", s.text(700))
		second := backup(t, r, s.request(t)).Record
		key := ""
		if len(o.Identities) > 0 {
			key = filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(key, []byte(o.Identities[0].(*age.X25519Identity).String()+"\n"),
				0o600); err != nil {
				t.Fatal(err)
			}
		}
		place := r.Place()
		shells(t, func(t *testing.T, shell []string) {
			into := filepath.Join(t.TempDir(), "into")
			if out, err := script(t, shell, place, key, "latest", into); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			same(t, "the newest", shot(t, s.dir), shot(t, filepath.Join(into, "media")))
			into = filepath.Join(t.TempDir(), "into")
			if out, err := script(t, shell, place, key, first.ID[:30], into, "media/uploads/2026/01",
				"media/a/x"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			want := map[string]string{}
			for name, v := range was {
				if strings.HasPrefix(name, "uploads/2026/01/") || name == "a/x" {
					want[name] = v
				}
			}
			same(t, "a folder of the first", want, shot(t, filepath.Join(into, "media")))
			if out, err := script(t, shell, place, key); err != nil || strings.Count(out, "complete, ") != 2 ||
				!strings.Contains(out, second.ID) {
				t.Errorf("the list: %v\n%s", err, out)
			}
			if out, err := script(t, shell, place, key, "latest"); err != nil ||
				strings.Count(out, "\n") != int(second.Files) {
				t.Errorf("the files: %v\n%s", err, out)
			}
			if out, err := script(t, shell, place, key, "latest", into); err == nil ||
				!strings.Contains(out, "is not empty") {
				t.Errorf("a folder with files is taken: %v\n%s", err, out)
			}
		})
	})
}

func TestTheScriptFindsDamage(t *testing.T) {
	need(t, "zstd")
	s := newSite(t, 10)
	r := create(t, options(local(t, t.TempDir())))
	b := backup(t, r, s.request(t)).Record
	for name, size := range b.Objects {
		p := filepath.Join(r.Place(), objectKey(name))
		whole, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		broken := bytes.Clone(whole)
		broken[size/2] ^= 1
		if err := os.WriteFile(p, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := script(t, []string{"sh"}, r.Place(), "", "latest",
			filepath.Join(t.TempDir(), "into")); err == nil {
			t.Errorf("a changed bit of %s is not found:\n%s", name, out)
		}
		if err := os.WriteFile(p, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// forge writes a backup with the text of a manifest, as somebody can who may write to
// the place.
func forge(t *testing.T, r *Repository, text string) {
	t.Helper()
	put := (&site{}).put
	object := objectName(sumOf([]byte(text)), newRun(), false)
	put(t, r, objectKey(object), []byte(text))
	n := int64(len(text))
	record := &Record{
		Repository: r.ID(), Started: later(), Finished: later(), Status: Complete, Files: 1,
		Manifest: []Piece{{Object: object, Stored: n, Length: n, Sum: sumOf([]byte(text))}}, Objects: map[string]int64{
			object: n},
	}
	stored, err := record.encode()
	if err != nil {
		t.Fatal(err)
	}
	put(t, r, backupsFolder+recordID(record.Started, stored)+recordEnd, stored)
}

func TestTheScriptRunsNothingOfAManifest(t *testing.T) {
	need(t, "zstd")
	mark := filepath.Join(t.TempDir(), "mark")
	good := string(
		manifestOf([]Entry{{Name: "media/a", Size: 7, Mode: 0o644, Modified: later(), Sum: Sum{1}, Pieces: []Piece{
			{Object: object(1), Offset: 5, Stored: 7, Length: 7, Sum: Sum{1}},
		}}}))
	run := "x[$(touch " + mark + ")]"
	for what, change := range map[string][2]string{
		"an offset":     {"\t5\t7\traw", "\t" + run + "\t7\traw"},
		"a length":      {"\t5\t7\traw", "\t5\t" + run + "\traw"},
		"an object":     {object(1), "../../../etc/passwd"},
		"permissions":   {"0644", "u+s,-R"},
		"a name":        {"media/a", "media/../../a"},
		"a root's name": {"media/a", "/media/a"},
		"a hidden name": {"media/a", `media/\0056\0056/a`},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if text == good {
			t.Fatalf("%s changes nothing", what)
		}
		r := create(t, options(local(t, t.TempDir())))
		(&site{}).put(t, r, objectKey(object(1)), []byte("what the piece is cut out of"))
		forge(t, r, text)
		shells(t, func(t *testing.T, shell []string) {
			into := filepath.Join(t.TempDir(), "into")
			out, err := script(t, shell, r.Place(), "", "latest", into)
			if err == nil || !strings.Contains(out, "restore.sh: ") {
				t.Errorf("%s: %v\n%s", what, err, out)
			}
			if _, err := os.Stat(mark); err == nil {
				t.Fatalf("%s was run", what)
			}
			for _, path := range []string{filepath.Join(into, "..", "a"), filepath.Join(into, "a")} {
				if _, err := os.Lstat(path); err == nil {
					t.Errorf("%s: %s was written", what, path)
				}
			}
		})
	}
}
