package media

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/gen2brain/webp"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func solid(w, h int, c color.NRGBA) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range img.Pix {
		img.Pix[i] = [4]byte{c.R, c.G, c.B, c.A}[i%4]
	}
	return img
}

func pngOf(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func (s *site) file(url string) []byte {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.uploads, filepath.FromSlash(url)))
	if err != nil {
		s.t.Fatal(err)
	}
	return data
}

// An original is stamped once, however often its job runs, also when the record
// of the first run is lost. (Without the marker the second run stamps again.)
func TestAWatermarkIsStampedOnce(t *testing.T) {
	s := newSite(t, jobstest.SQLite, Options{Watermark: &Watermark{Source: "mark.png", Opacity: 50, Percent: 20}})
	s.upload(1, "mark.png", "image/png", pngOf(t, solid(40, 40, color.NRGBA{255, 0, 0, 255})))
	var lossy bytes.Buffer
	if err := webp.Encode(&lossy, solid(300, 200, color.NRGBA{0, 0, 255, 255})); err != nil {
		t.Fatal(err)
	}
	s.upload(2, "a.png", "image/png", pngOf(t, solid(300, 200, color.NRGBA{0, 0, 255, 255})))
	s.upload(3, "a.jpg", "image/jpeg", jpegOf(t, 300, 200))
	s.upload(4, "a.webp", "image/webp", lossy.Bytes())
	for id, url := range map[int]string{2: "a.png", 3: "a.jpg", 4: "a.webp"} {
		before := s.file(url)
		payload, _ := json.Marshal(map[string]any{"mediaFileId": id, "force": true})
		if _, err := s.run(string(payload), 1); err != nil {
			t.Fatal(err)
		}
		once := s.file(url)
		if bytes.Equal(before, once) {
			t.Errorf("%s was not stamped", url)
		}
		s.exec("UPDATE media_files SET options = NULL WHERE id = ?", id)
		if _, err := s.run(string(payload), 1); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(s.file(url), once) {
			t.Errorf("%s was stamped twice", url)
		}
	}
	img, err := png.Decode(bytes.NewReader(s.file("a.png")))
	if err != nil {
		t.Fatal(err)
	}
	if got, far := fmt.Sprint(img.At(280, 180)), fmt.Sprint(img.At(20, 20)); got != "{127 0 127 255}" ||
		far != "{0 0 255 255}" {
		t.Errorf("under the mark it is %s, far from it %s", got, far)
	}
	mark := s.file("mark.png")
	if _, err := s.run(`{"mediaFileId":1}`, 1); err != nil || !bytes.Equal(mark, s.file("mark.png")) {
		t.Errorf("the mark was stamped, or %v", err)
	}
}

func TestOurWatermarkRestsWhileTheCMSStamps(t *testing.T) {
	s := newSite(t, jobstest.SQLite, Options{Watermark: &Watermark{Source: "mark.png"}})
	s.setting("media_watermark_enabled", "1")
	s.upload(1, "a.jpg", "image/jpeg", jpegOf(t, 300, 200))
	before := s.file("a.jpg")
	if _, err := s.run(`{"mediaFileId":1}`, 1); err != nil || !bytes.Equal(before, s.file("a.jpg")) {
		t.Errorf("it was stamped, or %v", err)
	}
}
