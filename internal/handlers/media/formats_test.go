package media

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gen2brain/jpegn"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
	"github.com/cmsjobs/cmsjobs/internal/storage/storagetest"
)

// tagged is EXIF data with a model, an artist and a GPS position.
func tagged() []byte {
	entry := func(tag, kind byte, hi byte, n byte, value ...byte) []byte {
		return append([]byte{tag, hi, kind, 0, n, 0, 0, 0}, value...)
	}
	b := []byte("II*\x00\x08\x00\x00\x00\x03\x00")
	b = append(b, entry(0x10, 2, 0x01, 4, []byte("CAM\x00")...)...)
	b = append(b, entry(0x3b, 2, 0x01, 4, []byte("ME!\x00")...)...)
	b = append(b, entry(0x25, 4, 0x88, 1, 50, 0, 0, 0)...)
	b = append(b, 0, 0, 0, 0)
	b = append(b, 1, 0)
	return append(append(b, entry(0x01, 2, 0x00, 4, []byte("GPS\x00")...)...), 0, 0, 0, 0)
}

func TestMetadataIsDroppedUnlessAskedForAndPlacesAlways(t *testing.T) {
	var original bytes.Buffer
	o := jpegn.EncodeOptions{Exif: append([]byte("Exif\x00\x00"), tagged()...), Segments: []jpegn.Segment{
		{Marker: 0xe2, Data: []byte("ICC_PROFILE\x00\x01\x01PROFILE-OF-COLOURS")}}}
	if err := jpegn.Encode(&original, image.NewRGBA(image.Rect(0, 0, 400, 300)), &o); err != nil {
		t.Fatal(err)
	}
	for _, keep := range []bool{false, true} {
		s := newSite(t, jobstest.SQLite, Options{KeepEXIF: keep, KeepICC: keep, Optimize: keep})
		s.upload(1, "a.jpg", "image/jpeg", original.Bytes())
		if _, err := s.run(`{"mediaFileId":1}`, 1); err != nil {
			t.Fatal(err)
		}
		for name := range map[string]int{"a-thumb.jpg": 1, "a-large.jpg": 1} {
			data := string(s.file(name))
			if strings.Contains(data, "CAM") != keep || strings.Contains(data, "PROFILE-OF-COLOURS") != keep ||
				strings.Contains(data, "GPS") {
				t.Errorf("keep %v, %s: model %v, profile %v, place %v", keep, name, strings.Contains(data, "CAM"),
					strings.Contains(data, "PROFILE-OF-COLOURS"), strings.Contains(data, "GPS"))
			}
		}
	}
}

func TestCopiesInOtherFormats(t *testing.T) {
	s := newSite(t, jobstest.SQLite, Options{Copies: []string{"webp", "avif"}, Sizes: []Size{
		{Name: "small", Width: 60, Height: 40}}})
	s.upload(1, "a.jpg", "image/jpeg", jpegOf(t, 300, 200))
	if out, err := s.run(`{"mediaFileId":1}`, 1); err != nil || out.Made != 3 {
		t.Fatalf("%+v, %v", out, err)
	}
	if !bytes.Contains(s.file("a-thumb.jpg.webp")[:16], []byte("WEBP")) ||
		!bytes.Contains(s.file("a-thumb.jpg.avif")[:16], []byte("ftypavif")) {
		t.Error("the copies are not in their formats")
	}
	if r := s.record(1).Sizes["small.avif"]; r.MIME != "image/avif" || r.Width != 60 {
		t.Errorf("%+v", r)
	}
}

// A copy that is larger than its thumbnail saves nobody anything: it is not kept, one of
// an earlier original goes, and nothing is made again for it.
func TestACopyThatIsLargerIsNotKept(t *testing.T) {
	s := newSite(t, jobstest.SQLite, Options{Copies: []string{"avif"}, Sizes: []Size{
		{Name: "small", Width: 60, Height: 40}}})
	s.upload(1, "a.png", "image/png", jpegOf(t, 300, 200))
	if out, err := s.run(`{"mediaFileId":1}`, 1); err != nil || out.Made != 2 || out.NotKept != 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	var plain bytes.Buffer // of one colour: its thumbnail is smaller than an empty AVIF
	if err := png.Encode(&plain, image.NewGray(image.Rect(0, 0, 300, 200))); err != nil {
		t.Fatal(err)
	}
	s.write("a.png", plain.Bytes())
	out, err := s.run(`{"mediaFileId":1,"force":true}`, 1)
	if err != nil || out.Made != 1 || out.NotKept != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(s.uploads, "a-thumb.png.avif")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the larger copy is there: %v", err)
	}
	if out, err := s.run(`{"mediaFileId":1}`, 1); err != nil || out.Skipped == "" {
		t.Errorf("again: %+v, %v", out, err)
	}
	if r, err := s.handler.Check(t.Context(), CheckOptions{}, func(int64, int64) {}); err != nil || len(r.Missing) > 0 ||
		len(r.Orphans) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// An AVIF has thumbnails like any other picture.
func TestAnAVIFIsAnOriginal(t *testing.T) {
	s := newSite(t, jobstest.SQLite, Options{Copies: []string{"avif"}, Sizes: []Size{{Name: "small", Width: 60, Height: 40}}})
	s.upload(1, "a.jpg", "image/jpeg", jpegOf(t, 300, 200))
	if _, err := s.run(`{"mediaFileId":1}`, 1); err != nil {
		t.Fatal(err)
	}
	s.upload(2, "b.avif", "image/avif", s.file("a-thumb.jpg.avif"))
	s.handler.Options.Copies = nil
	if out, err := s.run(`{"mediaFileId":2}`, 1); err != nil || out.Made != 1 || out.Skipped != "" {
		t.Fatalf("%+v, %v", out, err)
	}
	if data := s.file("b-thumb.avif"); !bytes.Contains(data[:16], []byte("ftypavif")) {
		t.Errorf("%.20q is no AVIF", data)
	}
}

// The files may lie in a bucket; keys have the driver's prefix.
func TestPicturesInABucket(t *testing.T) {
	bucket := storagetest.New(t)
	s := newSite(t, jobstest.SQLite, Options{})
	for key, value := range map[string]string{"media_driver": "wasabi", "media_wasabi_bucket": bucket.Name,
		"media_wasabi_default_region": "us-east-1",
		"media_wasabi_root":           "top", "media_wasabi_access_key_id": storagetest.Key,
		"media_wasabi_secret_key": storagetest.Secret} {
		s.setting(key, value)
	}
	s.handler.Open = func(_ context.Context, p cms.MediaPlace) (storage.Store, error) {
		return storage.NewS3(storage.S3Config{Endpoint: bucket.URL, Region: p.Bucket.Region, Bucket: p.Bucket.Name,
			AccessKey: p.Bucket.AccessKey, SecretKey: p.Bucket.Secret, PathStyle: true})
	}
	settings, err := s.Settings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	place, err := s.MediaPlace(settings)
	if err != nil {
		t.Fatal(err)
	}
	store, err := s.handler.store(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Put(t.Context(), "top/news/a.jpg", bytes.NewReader(jpegOf(t, 900, 600)),
		storage.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	s.exec("INSERT INTO media_files (id, name, mime_type, url) VALUES (1, 'a', 'image/jpeg', 'news/a.jpg')")
	if out, err := s.run(`{"mediaFileId":1}`, 1); err != nil || out.Made != 3 {
		t.Fatalf("%+v, %v", out, err)
	}
	if info, err := store.Stat(t.Context(), "top/news/a-large.jpg"); err != nil || info.Size == 0 {
		t.Errorf("%+v, %v", info, err)
	}
	if out, err := s.run(`{"mediaFileId":1}`, 1); err != nil || out.Skipped == "" {
		t.Errorf("again: %+v, %v", out, err)
	}
}

// Without the CMS's folder its sizes are learnt from what it made before.
func TestSizesAreLearntFromSiblings(t *testing.T) {
	s := newSite(t, jobstest.SQLite, Options{})
	s.setting("theme", "any")
	for _, name := range []string{"a", "b", "c"} {
		for _, file := range []string{name, name + "-150x150", name + "-540x360", name + "-400xauto",
			"banner-728x90-" + name} {
			s.write("news/"+file+".jpg", jpegOf(t, 8, 8))
		}
	}
	s.write("news/a-77x77.jpg", jpegOf(t, 8, 8)) // once only: no size of the CMS
	s.upload(1, "news/new.jpg", "image/jpeg", jpegOf(t, 600, 600))
	store, err := storage.NewLocal(s.uploads, storage.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.handler.Open = func(context.Context, cms.MediaPlace) (storage.Store, error) { return store, nil }
	s.Root = ""
	s.setting("media_driver", "r2")
	s.setting("media_r2_bucket", "b")
	if out, err := s.run(`{"mediaFileId":1}`, 1); err != nil || out.Made != 3 {
		t.Fatalf("%+v, %v", out, err)
	}
	for url, want := range map[string]string{"news/new-150x150.jpg": "(150,150)", "news/new-540x360.jpg": "(540,360)",
		"news/new-400xauto.jpg": "(400,400)"} {
		if got := s.size(url); got != want {
			t.Errorf("%s is %q", url, got)
		}
	}
}

// The CMS's setting, which is always there, does not switch attention off.
func TestAttentionWinsOverTheCMS(t *testing.T) {
	for option, want := range map[string]picture.Position{"attention": "attention", "top": "center"} {
		s := newSite(t, jobstest.SQLite, Options{Position: option})
		s.setting("media_thumbnail_crop_position", "center")
		p, err := s.handler.plan(t.Context())
		if err != nil || p.position != want {
			t.Errorf("%s: %q, want %q; %v", option, p.position, want, err)
		}
	}
}
