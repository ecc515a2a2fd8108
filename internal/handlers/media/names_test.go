package media

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// Rows as real sites have them: each picture is found, its thumbnails are named
// as the site's pages ask for them, and nothing is taken for lost or orphaned.
func TestEveryNameOfAPictureIsRead(t *testing.T) {
	const composed, apart = "caf\u00e9.jpg", "cafe\u0301.jpg"
	for i, c := range []struct{ row, file, thumb string }{
		{"./root.webp.jpg", "root.webp.jpg", "root.webp-150x150.jpg"}, // core 7.4.3 and newer write "./"
		{"news/../up.jpg", "up.jpg", "up-150x150.jpg"},
		{"news//twice.jpg", "news/twice.jpg", "news/twice-150x150.jpg"},
		{"/slash.jpg", "slash.jpg", "slash-150x150.jpg"},
		{"/storage/news/public.jpg", "news/public.jpg", "news/public-150x150.jpg"},
		{"storage/mine.jpg", "storage/mine.jpg", "storage/mine-150x150.jpg"},
		{"https://cms.example/storage/news/address.jpg", "news/address.jpg", "news/address-150x150.jpg"},
		{"//www.cms.example/storage/scheme.jpg", "scheme.jpg", "scheme-150x150.jpg"},
		{"UPLOADS/news/disk.jpg", "news/disk.jpg", "news/disk-150x150.jpg"},
		{"a%20b.jpg", "a b.jpg", "a b-150x150.jpg"},
		{"100%25.jpg", "100%25.jpg", "100%25-150x150.jpg"},
		{"nfc/" + composed, "nfc/" + apart, "nfc/caf\u00e9-150x150.jpg"}, // pages ask for the row's form
		{"nfd/" + apart, "nfd/" + composed, "nfd/cafe\u0301-150x150.jpg"},
		{"caf%C3%A9-escaped.jpg", "caf\u00e9-escaped.jpg", "caf\u00e9-escaped-150x150.jpg"},
		{"b\u00e0i-vi\u1ebft.jpg", "b\u00e0i-vi\u1ebft.jpg", "b\u00e0i-vi\u1ebft-150x150.jpg"},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			s := newSite(t, jobstest.SQLite, Options{})
			s.Env["APP_URL"] = "https://cms.example"
			s.setting("theme", "ripple")
			row := strings.Replace(c.row, "UPLOADS", s.uploads, 1)
			s.exec("INSERT INTO media_files (id, name, mime_type, url) VALUES (?, 'x', 'image/jpeg', ?)", i+1, row)
			s.write(c.file, jpegOf(t, 300, 200))
			end, err := s.handler.Regenerate(t.Context(), RegenerateOptions{}, func(p Progress) {
				if p.Err != nil {
					t.Error(p.Err)
				}
			})
			if err != nil || end.Made != 1 || s.size(c.thumb) != "(150,150)" {
				t.Errorf("%+v, %s is %q, %v", end, c.thumb, s.size(c.thumb), err)
			}
			r, err := s.handler.Check(t.Context(), CheckOptions{Unwanted: true}, func(int64, int64) {})
			if err != nil || r.Pictures != 1 || len(r.Lost)+len(r.Missing)+len(r.Orphans) != 0 {
				t.Errorf("%+v, %v", r, err)
			}
			var url string
			if err := s.DB.Get(&url, "SELECT url FROM media_files"); err != nil || url != row {
				t.Errorf("the row now says %q, %v", url, err)
			}
		})
	}
}

func TestAPictureOfAnotherSiteIsLeftAlone(t *testing.T) {
	s := newSite(t, jobstest.SQLite, Options{})
	s.Env["APP_URL"] = "https://cms.example"
	s.exec("INSERT INTO media_files (id, name, mime_type, url) VALUES (1, 'x', 'image/jpeg', " +
		"'https://cdn.example/storage/a.jpg')")
	s.write("a.jpg", jpegOf(t, 300, 200))
	if out, err := s.run(`{"mediaFileId":1}`, 1); err != nil || !strings.Contains(out.Skipped, "another site") {
		t.Errorf("%+v, %v", out, err)
	}
}

// A row is found by the path that a payload names, however the row writes it.
func TestARowIsFoundByItsPath(t *testing.T) {
	s := newSite(t, jobstest.SQLite, Options{})
	s.exec("INSERT INTO media_files (id, name, mime_type, url) VALUES (1, 'x', 'image/jpeg', './a.jpg'), " +
		"(2, 'x', 'image/jpeg', 'news/b.jpg')")
	for path, want := range map[string]string{"a.jpg": "1", "./a.jpg": "1", "/storage/a.jpg": "1",
		"news/b.jpg": "2", "/storage/news/b.jpg": "2"} {
		if m, err := s.MediaFile(context.Background(), "", path); err != nil || m.ID != want {
			t.Errorf("%s: %+v, %v", path, m, err)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add("./a.jpg")
	f.Add("https://cms.example/storage/%2e%2e/%2e%2e/x")
	f.Fuzz(func(t *testing.T, address string) {
		place := cms.MediaPlace{Folder: "/var/www/site/public/storage", Site: "https://cms.example"}
		names, err := place.Names(address)
		if err == nil && len(names) == 0 {
			t.Fatalf("%q has neither a name nor an error", address)
		}
		for _, n := range names {
			for _, name := range []string{n.File, n.Page} {
				if name == "" || name[0] == '/' || slices.Contains(strings.Split(name, "/"), "..") {
					t.Fatalf("%q became %q", address, name)
				}
			}
		}
	})
}
