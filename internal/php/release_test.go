//go:build unix

package php_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/php"
)

// release makes a folder of code.
func release(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "vendor", "composer"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"artisan", ".env", "vendor/composer/autoload_static.php"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAReleaseIsKnownByItsFolderItsAutoloaderAndItsSettings(t *testing.T) {
	one, two, current := release(t), release(t), filepath.Join(t.TempDir(), "current")
	if err := os.Symlink(one, current); err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	step := func(name string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		text := php.Release(current)
		if before, again := seen[text]; again || text != php.Release(current) {
			t.Errorf("after %q the release is that after %q", name, before)
		}
		seen[text] = name
	}
	step("nothing", nil)
	step("composer", os.WriteFile(filepath.Join(one, "vendor/composer/autoload_static.php"), []byte("<?php"), 0o600))
	step("a setting", os.WriteFile(filepath.Join(one, ".env"), []byte("APP_DEBUG=false"), 0o600))
	step("settings of the same length", os.Chtimes(filepath.Join(one, ".env"), time.Time{}, time.Now().Add(time.Hour)))
	step("another release", errors.Join(os.Symlink(two, current+".new"), os.Rename(current+".new", current)))
}

// The code changes while a job runs: it ends in its process, and the next job has another.
func TestNewCodeReplacesTheProcessesAfterTheirJobs(t *testing.T) {
	r, dir := newRig(t, 30, laravels), release(t)
	r.be("take its time", func(c *php.Config) { c.Release = func() string { return php.Release(dir) } })
	r.await("jobs run", time.Minute, func() bool { return r.count("cmsjobs_runs") >= 3 })
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("APP_KEY=another"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.drained("default", time.Minute)
	r.stop()
	names, _ := filepath.Glob(filepath.Join(r.dir, "pid-*"))
	if done, all := r.count("cmsjobs_runs WHERE outcome = 'completed' AND attempt = 1"),
		r.count("cmsjobs_runs"); done != 30 || all != 30 || len(names) != 2 {
		t.Errorf("%d of %d runs are completed at first, in %d processes", done, all, len(names))
	}
}
