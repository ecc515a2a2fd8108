package cms

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// folder makes files (paths ending in "/" are folders, "a -> b" is a link).
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if to, link := strings.CutPrefix(content, "-> "); link {
			err = os.Symlink(to, path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestUploadsLieInOneOfFivePlaces(t *testing.T) {
	plain := folder(t, map[string]string{"public/storage/x": ""})
	linked := folder(t, map[string]string{"storage/app/public/x": "", "public/storage": "-> ../storage/app/public"})
	for _, c := range []struct {
		root     string
		settings Settings
		env      Env
		want     string
	}{
		{plain, nil, nil, "public/storage"},
		{linked, nil, nil, "storage/app/public"},
		{plain, nil, Env{"RV_MEDIA_USE_STORAGE_SYMLINK": "true"}, "storage/app/public"},
		{plain, nil, Env{"RV_MEDIA_DEFAULT_UPLOAD_FOLDER": "files"}, "public/files"},
		{linked, Settings{"media_customize_upload_path": "1", "media_upload_path": "/a/b/"},
			Env{"RV_MEDIA_DEFAULT_UPLOAD_FOLDER": "files"}, "public/a/b"},
		{plain, Settings{"media_customize_upload_path": "0", "media_upload_path": "a"}, nil, "public/storage"},
	} {
		place, err := (&Site{Root: c.root, Env: c.env}).MediaPlace(c.settings)
		if want := filepath.Join(c.root, c.want); err != nil || place.Folder != want {
			t.Errorf("%v %v: %q, want %q, %v", c.settings, c.env, place.Folder, want, err)
		}
	}
	_, err := (&Site{Root: plain}).MediaPlace(Settings{"media_customize_upload_path": "1",
		"media_upload_path": "../../etc"})
	if err == nil {
		t.Error("an upload path outside of public was taken")
	}
}

func TestBucketsOfTheDrivers(t *testing.T) {
	site := &Site{Env: Env{"AWS_BUCKET": "env", "AWS_SECRET_ACCESS_KEY": "hidden"}}
	s3, err := site.MediaPlace(Settings{"media_driver": "s3", "media_aws_access_key_id": "key",
		"media_aws_default_region": "eu"})
	if err != nil || s3.Bucket.Name != "env" || s3.Bucket.Secret != "hidden" || s3.Bucket.Region != "eu" ||
		s3.Bucket.PathStyle {
		t.Errorf("s3: %v, %v", s3.Bucket.Name, err)
	}
	if shown := fmt.Sprintf("%v %+v %#v", s3, s3, s3.Bucket); strings.Contains(shown, "hidden") {
		t.Errorf("the secret is shown: %s", shown)
	}
	r2, err := site.MediaPlace(Settings{"media_driver": "r2", "media_r2_bucket": "b", "media_r2_endpoint": "https://e"})
	if err != nil || r2.Bucket.Region != "auto" || !r2.Bucket.PathStyle || r2.Bucket.Endpoint != "https://e" {
		t.Errorf("r2: %v, %v", r2.Bucket, err)
	}
	wasabi, err := site.MediaPlace(Settings{"media_driver": "wasabi", "media_wasabi_bucket": "b",
		"media_wasabi_default_region": "eu-1", "media_wasabi_root": "/top/"})
	if err != nil || wasabi.Bucket.Endpoint != "https://s3.eu-1.wasabisys.com" ||
		wasabi.Key("/a/b.jpg") != "top/a/b.jpg" {
		t.Errorf("wasabi: %+v, %v", wasabi, err)
	}
	for _, bad := range []Settings{{"media_driver": "bunnycdn"}, {"media_driver": "ftp"},
		{"media_driver": "backblaze"}} {
		if _, err := site.MediaPlace(bad); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}

func TestMediaSizesComeFromCodeAndSettings(t *testing.T) {
	root := folder(t, map[string]string{
		"platform/core/media/config/media.php": "<?php return ['sizes' => ['thumb' => '120x120', " +
			"'tall' => 'autox300'], 'other' => 1];",
		"platform/themes/homzen/functions/functions.php": "<?php\n# RvMedia::addSize('no1', 1, 1)\n/* " +
			"RvMedia::addSize('no2', 1, 1); */\n$s = '// in a string'; RvMedia::addSize('square', 400, 400)\n  " +
			"->addSize(\"rect\", 400, 560)->addSize('free', 320);",
		"platform/themes/other/functions/functions.php":        "<?php RvMedia::addSize('no3', 1, 1);",
		"platform/plugins/shop/src/Providers/ShopProvider.php": "<?php RvMedia::addSize('shop', 'auto', 90);",
		"platform/plugins/off/src/Providers/OffProvider.php":   "<?php RvMedia::addSize('no4', 1, 1);",
	})
	site := &Site{Root: root}
	settings := Settings{"theme": "homzen", "activated_plugins": `["shop","../../etc"]`,
		"media_sizes_square_width": "500",
		"media_sizes_rect_width":   "", "media_sizes_rect_height": ""}
	got, err := site.MediaSizes(settings)
	want := []MediaSize{{"thumb", 120, 120}, {"tall", 0, 300}, {"square", 500, 400}, {"free", 320, 0}, {"shop", 0, 90}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := site.MediaSizes(Settings{"media_enable_thumbnail_sizes": "0"}); err != nil || got != nil {
		t.Errorf("switched off: %v, %v", got, err)
	}
	if got, err := (&Site{}).MediaSizes(Settings{}); err != nil ||
		!reflect.DeepEqual(got, []MediaSize{{"thumb", 150, 150}}) {
		t.Errorf("without a folder: %v, %v", got, err)
	}
}

func FuzzWithoutComments(f *testing.F) {
	f.Add("<?php // a\n/* b */ 'c\\'' # d")
	f.Fuzz(func(t *testing.T, code string) {
		if got := withoutComments(code); len(got) > len(code) {
			t.Fatalf("%q became %q", code, got)
		}
	})
}

// Many writers of different keys at once: none is lost. (With the comparison
// taken out of the UPDATE about half of the keys are gone.)
func TestOptionsAreMergedNotReplaced(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			db := jobstest.Open(t, engine)
			site := &Site{DB: db.DB}
			for _, statement := range []string{"CREATE TABLE media_files (id INTEGER PRIMARY KEY, options TEXT)",
				`INSERT INTO media_files VALUES (1, '{"b":{"x":1.0},"a":[]}'), (2, NULL), (3, '[]'), (4, 'no json')`} {
				if _, err := db.Exec(statement); err != nil {
					t.Fatal(err)
				}
			}
			var group sync.WaitGroup
			for i := range 4 {
				group.Go(func() {
					if err := site.SetMediaOption(context.Background(), "1", fmt.Sprintf("k%d", i), i); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			check := func(id string, want string) {
				t.Helper()
				var text string
				if err := db.Get(&text, "SELECT options FROM media_files WHERE id = "+id); err != nil || text != want {
					t.Errorf("%s: %s, want %s, %v", id, text, want, err)
				}
			}
			check("1", `{"a":[],"b":{"x":1.0},"k0":0,"k1":1,"k2":2,"k3":3}`)
			for _, id := range []string{"2", "3", "4"} {
				if err := site.SetMediaOption(t.Context(), id, "k", json.RawMessage(`"v"`)); err != nil {
					t.Error(err)
				}
				check(id, `{"k":"v"}`)
			}
			if err := site.SetMediaOption(t.Context(), "3", "k", nil); err != nil {
				t.Error(err)
			}
			check("3", `{}`)
			if err := site.SetMediaOption(t.Context(), "99", "k", 1); !errors.Is(err, ErrNoMedia) {
				t.Errorf("no row: %v", err)
			}
		})
	}
}

// Deployer and others link "platform", "config" and "vendor" into a release.
func TestTheOwnersCodeMayBeALink(t *testing.T) {
	elsewhere := folder(t, map[string]string{
		"platform/core/media/config/media.php":      "<?php return ['sizes' => ['thumb' => '120x120']];",
		"platform/core/base/helpers/common.php":     "<?php function get_core_version() { return '7.4.5'; }",
		"platform/themes/x/functions/functions.php": "<?php RvMedia::addSize('wide', 400, 100);",
		"config/queue.php":                          "<?php return ['connections' => ['database' => ['table' => 'queue_jobs']]];"})
	root := t.TempDir()
	for _, name := range []string{"platform", "config"} {
		if err := os.Symlink(filepath.Join(elsewhere, name), filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	site := &Site{Root: root}
	sizes, err := site.MediaSizes(Settings{"theme": "x"})
	if err != nil || !reflect.DeepEqual(sizes, []MediaSize{{"thumb", 120, 120}, {"wide", 400, 100}}) {
		t.Errorf("sizes %v, %v", sizes, err)
	}
	if version, err := site.codeVersion(); err != nil || version != "7.4.5" {
		t.Errorf("version %q, %v", version, err)
	}
	if table := site.QueueTable(); table != "queue_jobs" {
		t.Errorf("the queue's table is %q", table)
	}
}

func TestTheQueuesTable(t *testing.T) {
	env := Env{"DB_QUEUE_TABLE": "queue_jobs"}
	for file, want := range map[string]string{
		"":                              "queue_jobs", // no file: what Laravel's own says since version 11
		"'jobs'":                        "jobs",       // Laravel 10 and older do not read the variable
		"env('DB_QUEUE_TABLE', 'jobs')": "queue_jobs",
		"'backend_jobs'":                "backend_jobs",
		"table()":                       "jobs",
	} {
		files := map[string]string{".env": ""}
		if file != "" {
			files["config/queue.php"] = "<?php return ['connections' => ['database' => ['table' => " + file + "]]];"
		}
		if got := (&Site{Root: folder(t, files), Env: env}).QueueTable(); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}
