package picture

import (
	"bytes"
	"errors"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/gen2brain/jpegn"
)

// corpus calls each with every picture, and every seed of a fuzzer, that modules
// and Go itself ship beside their tests: damaged ones among them.
func corpus(t testing.TB, each func(name string, data []byte)) {
	t.Helper()
	modules := []string{"list", "-m", "-f", "{{.Dir}}", "github.com/gen2brain/jpegn", "golang.org/x/image",
		"github.com/gen2brain/webp", "github.com/gen2brain/avif"}
	dirs, err := exec.Command("go", modules...).Output()
	if err != nil {
		t.Skip("the modules' folders are not known: ", err)
	}
	largest := int64(300 << 10)
	if os.Getenv("CMSJOBS_SOAK") == "1" {
		largest = 64 << 20
	}
	for _, folder := range append(strings.Fields(string(dirs)), filepath.Join(runtime.GOROOT(), "src", "image")) {
		err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.Contains(path, "testdata") {
				return err
			}
			if info, err := entry.Info(); err != nil || info.Size() > largest {
				return err
			}
			data, err := os.ReadFile(path)
			if err == nil {
				each(path, seed(data))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

var seedLine = regexp.MustCompile(`(?m)^\[\]byte\((".*")\)$`)

// seed is what a file of Go's fuzzer holds; other files are themselves.
func seed(data []byte) []byte {
	if !bytes.HasPrefix(data, []byte("go test fuzz v1\n")) {
		return data
	}
	if m := seedLine.FindSubmatch(data); m != nil {
		if text, err := strconv.Unquote(string(m[1])); err == nil {
			return []byte(text)
		}
	}
	return data
}

// Each picture of the corpora is rendered or refused with an error of ours, in
// bounded memory. CMSJOBS_SOAK=1 takes the large ones too.
func TestForeignCorpora(t *testing.T) {
	m := maker()
	m.Limits.StreamedPixels, m.Limits.WholePixels, m.Limits.AnimatedPixels, m.Limits.ScannedPixels = 8e6, 4e6, 8e6, 80e6
	if _, err := m.Render(t.Context(), encodeAVIF(t, photo(40, 30)), []Spec{{Width: 20, Height: 20}}); err != nil {
		t.Fatal(err) // the first AVIF starts the library, once
	}
	rendered, refused := 0, 0
	var before, after runtime.MemStats
	corpus(t, func(name string, data []byte) {
		runtime.ReadMemStats(&before)
		r, err := m.Render(t.Context(), data, []Spec{{Width: 150, Height: 150}, {Width: 320, Height: 320, Mode: Fit}})
		runtime.ReadMemStats(&after)
		switch {
		case err == nil && len(r.Renditions) == 2:
			rendered++
		case errors.Is(err, ErrCorrupt), errors.Is(err, ErrUnsupported), errors.Is(err, ErrTooLarge):
			refused++
		default:
			t.Errorf("%s: %d renditions, %v", name, len(r.Renditions), err)
		}
		most := uint64(160 << 20) // in sum, not at once
		if r.Header.Format == AVIF {
			most = 320 << 20 // each decoding and each encoding begins with a new memory
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > most {
			t.Errorf("%s took %d MiB", name, used>>20)
		}
	})
	if t.Logf("%d rendered, %d refused", rendered, refused); rendered < 60 || refused < 5 {
		t.Error("too few were rendered, or refused")
	}
}

// FuzzRender feeds the engine with everything: no panic, no more renditions
// than asked for, each readable.
func FuzzRender(f *testing.F) {
	f.Add(encodeJPEG(f, photo(40, 30), nil))
	f.Add(encodeAVIF(f, photo(40, 30)))
	f.Add(encodeJPEG(f, photo(40, 30), &jpegn.EncodeOptions{Progressive: true}))
	f.Add(encodePNG(f, photo(20, 30)))
	f.Add(manyFrames(f, 3, 20))
	f.Add(encodeWebP(f, photo(20, 20), true))
	f.Add(animatedWebP(f, 2))
	f.Add(interlaced(f))
	f.Add(animatedPNG(f))
	m := maker()
	m.Limits.StreamedPixels, m.Limits.WholePixels, m.Limits.AnimatedPixels, m.Limits.ScannedPixels = 1e6, 1e6, 1e6, 1e7
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := m.Render(t.Context(), data, []Spec{{Width: 16, Height: 16, Formats: []Format{PNG}}})
		if err != nil {
			return
		}
		if img, err := png.Decode(bytes.NewReader(r.Renditions[0].Data)); err != nil || img.Bounds().Dx() != 16 {
			t.Fatalf("%v", err)
		}
	})
}
