package repository

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

// What unpacks to more than a piece holds, or is longer than an object can be, is
// refused before it takes memory.
func TestWhatIsTooLongIsRefused(t *testing.T) {
	r := create(t, options(local(t, t.TempDir())))
	w, err := zstd.NewWriter(nil, zstd.WithWindowSize(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	huge := make([]byte, 64<<20)
	for what, stored := range map[string][]byte{"a bomb": w.EncodeAll(huge, nil), "a long object": huge[:maxObject+1]} {
		name := objectName(sumOf(stored), newRun(), false)
		(&site{}).put(t, r, objectKey(name), stored)
		in, err := r.newReader()
		if err != nil {
			t.Fatal(err)
		}
		n := int64(min(len(stored), pieceSize))
		_, err = in.piece(t.Context(), Piece{Object: name, Stored: n, Packed: what == "a bomb", Length: n,
			Sum: sumOf(stored[:n])})
		wanted := zstd.ErrDecoderSizeExceeded
		if what == "a long object" {
			wanted = errTooLong
		}
		if !errors.Is(err, ErrDamaged) || !errors.Is(err, wanted) {
			t.Errorf("%s: %v", what, err)
		}
		if cap(in.buf) > 2*pieceSize {
			t.Errorf("%s took %d bytes", what, cap(in.buf))
		}
		in.close()
	}
}

// A backup of large and small files in a process, measured by the kernel. It is the
// same for any size: see the package's benchmark for gigabytes.
func TestMemoryStaysSmall(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector needs memory itself")
	}
	s := &site{dir: t.TempDir(), rand: newSite(t, 0).rand}
	s.write(t, "video.mp4", s.noise(100<<20))
	s.write(t, "log.txt", bytes.Repeat(s.text(1<<20), 64))
	for i := range 1500 {
		s.write(t, strings.Repeat("d/", i%7)+string(rune('a'+i%26))+"/"+strings.Repeat("x", i%200+1),
			s.noise(1000+i*37%60_000))
	}
	key := identity(t)
	for _, sealed := range []string{"", key.String()} {
		o := options(local(t, t.TempDir()))
		if sealed != "" {
			o.Identities = []age.Identity{key}
		}
		r := create(t, o)
		for _, what := range []string{forBackup, "restore"} {
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), exe)
			into := filepath.Join(t.TempDir(), "into")
			cmd.Env = append(os.Environ(), child+"="+strings.Join([]string{what, r.Place(), s.dir, into}, "|"),
				childKey+"="+sealed)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", what, err, out)
			}
			_, line, _ := strings.Cut(string(out), "VmHWM:")
			var peak int
			if _, err := fmt.Sscan(line, &peak); err != nil {
				t.Skip("the system does not say how much memory a process took")
			}
			t.Logf("%s, encrypted %v: %d kB", what, sealed != "", peak)
			if peak > 100_000 {
				t.Errorf("%s, encrypted %v: %d kB", what, sealed != "", peak)
			}
			if what == "restore" {
				same(t, what, shot(t, s.dir), shot(t, filepath.Join(into, "media")))
			}
		}
	}
}
