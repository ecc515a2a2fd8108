package cache

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// entry writes a cache entry where and as Laravel's file store does.
func (h *laravelSite) entry(key string, expiry int64) string {
	hash := fmt.Sprintf("%x", sha1.Sum([]byte(key)))
	name := strings.Join([]string{dataFolder, hash[:2], hash[2:4], hash}, "/")
	h.write(name, fmt.Sprintf("%010d", expiry)+`s:5:"value";`)
	return name
}

func TestTenThousandFilesOfWhichHalfExpired(t *testing.T) {
	h := newLaravelSite(t, jobstest.SQLite, nil)
	var kept, gone []string
	for i := range 10_000 {
		if i%2 == 0 {
			gone = append(gone, h.entry(fmt.Sprint("old", i), noon.Unix()-int64(i)))
		} else {
			kept = append(kept, h.entry(fmt.Sprint("new", i), noon.Unix()+1+int64(i)))
		}
	}
	kept = append(kept, h.entry("forever", 9999999999))
	h.write(dataFolder+"/.gitignore", "*")
	h.write(dataFolder+"/aa/bb/notes.txt", "0000000001")
	half := dataFolder + "/aa/bb/" + strings.Repeat("a", 40)
	h.write(half, "17") // PHP is just writing it
	h.write(dataFolder+"/0f/0f/x", "")
	if err := os.Remove(filepath.Join(h.site.Root, dataFolder, "0f/0f/x")); err != nil {
		t.Fatal(err)
	}

	dry, _ := h.run("cache.clearExpired", `{"dryRun":true}`)
	h.check(true, gone[0], gone[4999])
	r, _ := h.run("cache.clearExpired", ``)
	if r.Files != 5000 || dry.Files != 5000 || r.Bytes != 5000*int64(len(`0123456789s:5:"value";`)) || r.Failures != 0 {
		t.Errorf("removed %d files, %d bytes, %d failures; the dry-run said %d files", r.Files, r.Bytes, r.Failures,
			dry.Files)
	}
	h.check(false, gone...)
	h.check(true, kept...)
	h.check(true, dataFolder+"/.gitignore", dataFolder+"/aa/bb/notes.txt", half)
	h.check(false, dataFolder+"/0f/0f")
	if r.Folders == 0 {
		t.Error("no empty folder was removed")
	}

	h.write("storage/cache_keys.json", "{}")
	if r, _ := h.run("cache.clear", ``); r.Files != 5001+1+1 { // entries, the half one, cache_keys.json
		t.Errorf("clearing removed %d files", r.Files)
	}
	h.check(false, kept...)
	h.check(false, "storage/cache_keys.json")
	h.check(true, dataFolder+"/.gitignore")
}

func TestSymlinksAreNotFollowed(t *testing.T) {
	h := newLaravelSite(t, jobstest.SQLite, nil)
	outside := t.TempDir()
	victim := filepath.Join(outside, "ab", "cd", strings.Repeat("c", 40))
	if err := os.MkdirAll(filepath.Dir(victim), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(victim, []byte("0000000001"), 0o644); err != nil {
		t.Fatal(err)
	}
	h.entry("a", 1)
	if err := os.Symlink(outside+"/ab", filepath.Join(h.site.Root, dataFolder, "ab")); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(h.site.Root, dataFolder, "00/00", strings.Repeat("0", 40))
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}
	if r, _ := h.run("cache.clear", `{"clearAll":true}`); r.Files != 1 {
		t.Errorf("removed %d files, 1 was there", r.Files)
	}
	if _, err := os.Stat(victim); err != nil {
		t.Errorf("a file of another folder is gone: %v", err)
	}

	// The whole folder is somewhere else: best effort says so and does not fail.
	h = newLaravelSite(t, jobstest.SQLite, nil)
	if err := os.Symlink(outside, filepath.Join(h.site.Root, "storage")); err != nil {
		t.Fatal(err)
	}
	r, _ := h.run("cache.clear", `{"clearAll":true}`)
	if r.Failures == 0 || !strings.Contains(strings.Join(r.NotRemoved, " "), "not laid out as Laravel's") {
		t.Errorf("the report does not name the symlink: %+v", r)
	}
}

// Releases that share one storage by a link, as Deployer makes them, are cleaned; a link inside it that
// leads out is not followed.
func TestASharedStorageIsCleaned(t *testing.T) {
	h := newLaravelSite(t, jobstest.SQLite, nil)
	entry, log, view := h.entry("a", 1), h.log("laravel-2026-01-01.log", 3, 90*day), viewsFolder+"/a.php"
	h.write(view, "<?php")
	shared := filepath.Join(t.TempDir(), "shared", "storage")
	if err := os.MkdirAll(filepath.Dir(shared), 0o755); err != nil {
		t.Fatal(err)
	}
	here := filepath.Join(h.site.Root, "storage")
	if err := errors.Join(os.Rename(here, shared), os.Symlink(shared, here)); err != nil {
		t.Fatal(err)
	}
	for kind, gone := range map[string][]string{"cache.clear": {entry, view}, "logs.cleanup": {log}} {
		if r, _ := h.run(kind, map[string]string{"cache.clear": `{"clearAll":true}`}[kind]); r.Failures > 0 {
			t.Errorf("%s: %+v", kind, r)
		}
		h.check(false, gone...)
	}

	outside := t.TempDir()
	theirs := filepath.Join(outside, "laravel-2026-01-01.log")
	if err := errors.Join(os.WriteFile(theirs, []byte("old"), 0o600), os.Chtimes(theirs, noon.Add(-90*day),
		noon.Add(-90*day)), os.RemoveAll(filepath.Join(shared, "logs")),
		os.Symlink(outside, filepath.Join(shared, "logs"))); err != nil {
		t.Fatal(err)
	}
	if r, _ := h.run("logs.cleanup", ``); !strings.Contains(strings.Join(r.NotRemoved, " "), "symlinks are not followed") {
		t.Errorf("a link that leads out of the shared storage: %+v", r)
	}
	if _, err := os.Stat(theirs); err != nil {
		t.Errorf("a file of another folder is gone: %v", err)
	}
}

func TestWhatCannotBeRemovedIsListedAndTheJobDoesNotFail(t *testing.T) {
	if os.Geteuid() == 0 {
		// Root may remove everything, so the obstacle is a store of another type.
		h := newLaravelSite(t, jobstest.SQLite, cms.Env{"CACHE_STORE": "memcached"})
		h.write(viewsFolder+"/a.php", "<?php")
		r, _ := h.run("cache.clear", `{"clearAll":true}`)
		if r.Failures != 1 || !strings.Contains(r.NotRemoved[0], "php artisan cache:clear") || r.Files != 1 {
			t.Errorf("%+v", r)
		}
		return
	}
	h := newLaravelSite(t, jobstest.SQLite, nil)
	name := h.entry("stuck", 1)
	dir := filepath.Dir(filepath.Join(h.site.Root, name))
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o755)
	if r, _ := h.run("cache.clear", ``); r.Failures != 1 || len(r.NotRemoved) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestClearAllTakesWhatPHPMakesAgainAndNothingElse(t *testing.T) {
	h := newLaravelSite(t, jobstest.SQLite, nil)
	gone := []string{viewsFolder + "/1a2b.php", bootstrapFolder + "/config.php", bootstrapFolder + "/routes-v7.php",
		bootstrapFolder + "/events.php", "storage/cache_keys.json"}
	kept := []string{viewsFolder + "/.gitignore", bootstrapFolder + "/packages.php", bootstrapFolder + "/services.php",
		"storage/app/chunks/upload.part",
		"storage/framework/sessions/s1", "storage/app/backup/x/database.sql", "public/index.php", ".env"}
	for _, name := range append(gone, kept...) {
		h.write(name, "x")
	}
	if r, _ := h.run("cache.clear", `{"clearAll":true,"dryRun":true}`); r.Files != int64(len(gone)) {
		t.Errorf("a dry-run counts %d of %d files", r.Files, len(gone))
	}
	h.check(true, gone...)
	h.run("cache.clear", `{"clearAll":true}`)
	h.check(false, gone...)
	h.check(true, kept...)
}

func TestTagsClearTheCMSGroupsAndLeaveTheRest(t *testing.T) {
	h := newLaravelSite(t, jobstest.SQLite, nil)
	menu1, menu2, other := h.entry("m1@a", 9999999999), h.entry("m1@b", 9999999999), h.entry("x", 9999999999)
	h.write("storage/cache_keys.json", `{"Botble\\Menu\\Models\\Menu":{"0":"m1@a","2":"m1@b"},"languages":["l@1"]}`)

	dry, _ := h.run("cache.clear", `{"tags":["menus"],"dryRun":true}`)
	r, _ := h.run("cache.clear", `{"tags":["menus"]}`)
	if dry.Files != 2 || r.Files != 2 {
		t.Errorf("removed %d files, the dry-run said %d", r.Files, dry.Files)
	}
	h.check(false, menu1, menu2)
	h.check(true, other)
	if left, err := os.ReadFile(filepath.Join(h.site.Root, "storage/cache_keys.json")); err != nil ||
		string(left) != `{"languages":["l@1"]}` {
		t.Errorf("cache_keys.json is %s (%v)", left, err)
	}
	// The file store cannot tell the sitemap's entries: all go, and the report says why.
	if r, _ := h.run("cache.clear", `{"tags":["pages","sitemap"]}`); r.Files != 1 || len(r.Notes) == 0 {
		t.Errorf("%+v", r)
	}
	h.check(false, other)
}
