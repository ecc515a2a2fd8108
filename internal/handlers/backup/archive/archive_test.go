package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/gzip"
)

var formats = []Format{TarZstd, TarGzip, Zip}

func pack(t testing.TB, f Format, recipients []age.Recipient, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, f, recipients)
	if err != nil {
		t.Fatal(err)
	}
	for i, content := range files {
		if _, err := w.Add(fmt.Sprintf("files/ü %d", i), time.Unix(1e9, 0), int64(len(content)),
			strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func unpack(f Format, data []byte, identities ...age.Identity) (map[string]string, error) {
	files := map[string]string{}
	err := Read(context.Background(), bytes.NewReader(data), f, len(identities) > 0, identities,
		func(e Entry, r io.Reader) error {
			content, err := io.ReadAll(r)
			files[e.Name] = string(content)
			return err
		})
	return files, err
}

func TestWhatIsPackedIsUnpacked(t *testing.T) {
	big := strings.Repeat("0123456789", 500_000)
	for _, f := range formats {
		got, err := unpack(f, pack(t, f, nil, "", "a", big))
		if err != nil || len(got) != 3 || got["files/ü 1"] != "a" || got["files/ü 2"] != big {
			t.Errorf("%s: %d files, %v", f, len(got), err)
		}
	}
}

func TestOrdinaryToolsUnpack(t *testing.T) {
	for f, command := range map[Format]string{TarZstd: "zstd -dc | tar -xO", TarGzip: "gzip -dc | tar -xO"} {
		cmd := exec.Command("sh", "-c", command)
		cmd.Stdin = bytes.NewReader(pack(t, f, nil, "first\n", "second\n"))
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "first\nsecond\n" {
			t.Errorf("%s: %q, %v", f, out, err)
		}
	}
}

func TestAShorterFileIsFilledUpAndNamed(t *testing.T) {
	for _, f := range formats {
		var out bytes.Buffer
		w, err := NewWriter(&out, f, nil)
		if err != nil {
			t.Fatal(err)
		}
		short, err := w.Add("a", time.Time{}, 5, strings.NewReader("xy"))
		if !errors.Is(err, ErrShort) || short == "" {
			t.Errorf("%s: %v", f, err)
		}
		broken := errors.New("disk")
		if sum, err := w.Add("b", time.Time{}, 5, iotest.ErrReader(broken)); !errors.Is(err, broken) || sum == "" {
			t.Errorf("%s: %v", f, err)
		}
		if _, err := w.Add("c", time.Time{}, 1, strings.NewReader("longer")); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := unpack(f, out.Bytes())
		if err != nil || got["a"] != "xy\x00\x00\x00" || got["b"] != "\x00\x00\x00\x00\x00" || got["c"] != "l" {
			t.Errorf("%s: %q, %v", f, got, err)
		}
	}
}

func TestTornAndChangedArchivesAreFound(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	content := strings.Repeat("some text that packs, ", 20_000)
	for _, f := range formats {
		for _, sealed := range []bool{false, true} {
			var recipients []age.Recipient
			var identities []age.Identity
			if sealed {
				recipients, identities = []age.Recipient{identity.Recipient()}, []age.Identity{identity}
			}
			whole := pack(t, f, recipients, content, "end")
			if _, err := unpack(f, whole, identities...); err != nil {
				t.Fatal(err)
			}
			for _, cut := range []int{1, 2, 4, 10, len(whole) / 2, len(whole) - 1} {
				if _, err := unpack(f, whole[:len(whole)-cut], identities...); err == nil {
					t.Errorf("%s (sealed %v) without its last %d of %d bytes is taken", f, sealed, cut, len(whole))
				}
			}
		}
	}
}

// hostile archives, each with one entry that must not be restored.
func TestHostileEntriesAreRefused(t *testing.T) {
	names := []string{"../evil", "/etc/passwd", "a/../../evil", "a//b", "", ".", "a\\..\\b", "C:\\evil",
		"a/\x01/../..", "./a", "a\x00b", strings.Repeat("a/", 2048) + "a"}
	for _, name := range names {
		if !strings.Contains(name, "\x00") { // which only zip can say
			if _, err := unpack(TarGzip,
				tarball(t, &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: 1})); err == nil {
				t.Errorf("tar: the name %.100q is taken", name)
			}
		}
		if name == "" {
			continue
		}
		if _, err := unpack(Zip, zipped(t, name, 0o644)); !errors.Is(err, ErrUnsafe) &&
			!errors.Is(err, zip.ErrInsecurePath) {
			t.Errorf("zip: the name %.100q: %v", name, err)
		}
	}
	for _, kind := range []byte{tar.TypeSymlink, tar.TypeLink, tar.TypeChar, tar.TypeBlock, tar.TypeFifo, tar.TypeDir} {
		if _, err := unpack(TarGzip,
			tarball(t, &tar.Header{Typeflag: kind, Name: "a", Linkname: "/etc/passwd"})); !errors.Is(err, ErrUnsafe) {
			t.Errorf("tar: the type %q: %v", kind, err)
		}
	}
	for _, mode := range []fs.FileMode{fs.ModeSymlink, fs.ModeDevice, fs.ModeNamedPipe, fs.ModeDir} {
		if _, err := unpack(Zip, zipped(t, "a", mode|0o644)); !errors.Is(err, ErrUnsafe) {
			t.Errorf("zip: the mode %v: %v", mode, err)
		}
	}
}

// A megabyte may follow the last entry, which tar's own padding never reaches:
// more is what another tool would take for a second archive.
func TestWhatFollowsTheLastEntryIsRefused(t *testing.T) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	err := errors.Join(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a"}), w.Close())
	if _, more := z.Write(make([]byte, 1<<20)); err != nil || more != nil {
		t.Fatal(err, more)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := unpack(TarGzip, out.Bytes()); !errors.Is(err, ErrUnsafe) {
		t.Errorf("%v", err)
	}
}

func tarball(t *testing.T, h *tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(h); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, h.Size)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zipped(t *testing.T, name string, mode fs.FileMode) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	h := &zip.FileHeader{Name: name}
	h.SetMode(mode)
	if _, err := w.CreateHeader(h); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestOnlyItsIdentityOpensAnArchive(t *testing.T) {
	mine, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	data := pack(t, TarZstd, []age.Recipient{mine.Recipient()}, "secret")
	if _, err := unpack(TarZstd, data, other); !errors.Is(err, ErrLocked) {
		t.Errorf("%v", err)
	}
	if got, err := unpack(TarZstd, data, other, mine); err != nil || got["files/ü 0"] != "secret" {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzRead(f *testing.F) {
	for i, format := range formats {
		f.Add(i, pack(f, format, nil, "a", "bb"))
	}
	f.Fuzz(func(t *testing.T, i int, data []byte) {
		err := Read(t.Context(), bytes.NewReader(data), formats[uint(i)%3], false, nil,
			func(e Entry, r io.Reader) error {
				if !fs.ValidPath(e.Name) {
					t.Errorf("%q is visited", e.Name)
				}
				_, err := io.Copy(io.Discard, io.LimitReader(r, 1<<20))
				if err == nil && e.Size > 1<<20 {
					err = errors.New("large enough")
				}
				return err
			})
		_ = err // any error is right; a panic is not
	})
}
