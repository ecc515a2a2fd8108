package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/doctor"
)

// TestDoctorLooksAtTheRepositoryOfBackups breaks the repository of a site and carries the
// remedies out that doctor and the page name.
func TestDoctorLooksAtTheRepositoryOfBackups(t *testing.T) {
	t.Parallel()
	dir, _ := sampleSite(t)
	on := func(args ...string) result {
		t.Helper()
		return call(t, nil, append([]string{"--cms", dir, "--json", "--set", "backup.verify=read", "--set",
			"backup.free_space=1MiB"}, args...)...)
	}
	says := func(check, status, text string, flags ...string) {
		t.Helper()
		var said []string
		for _, f := range answer[[]doctor.Finding](t, on(append(flags, "doctor")...)) {
			if f.Check != check {
				continue
			}
			said = append(said, f.Status+" "+f.What)
			if f.Status == status && strings.Contains(f.What, text) && (status == doctor.OK || f.Fix != "") {
				return
			}
		}
		t.Errorf("%s: want %s %q, and it says %q", check, status, text, said)
	}
	says("repository", doctor.OK, "no repository at local yet")
	want(t, on("backup", "create"), 0)
	says("repository", doctor.OK, "the repository at local has 1 backup, the last one verified")
	says("space for backups", doctor.OK, "fits")
	says("space for backups", doctor.Fail, "does not fit at local", "--set", "backup.free_space=1000000GiB")

	repository := filepath.Join(dir, "storage", "app", "cmsjobs-backups", "repository")
	lock := filepath.Join(repository, "locks", "backup-abcdefghijklm")
	if err := os.WriteFile(lock, []byte("a host\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	died := time.Now().Add(-time.Hour)
	if err := os.Chtimes(lock, died, died); err != nil {
		t.Fatal(err)
	}
	says("repository", doctor.Warn, "locks/backup-abcdefghijklm")
	want(t, on("backup", "prune"), 0)
	says("repository", doctor.OK, "has 1 backup")

	format := filepath.Join(repository, "format.txt")
	if err := os.Remove(format); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(format, []byte("something else\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	says("repository", doctor.Fail, "is damaged")
	if err := os.Rename(repository, repository+".damaged"); err != nil {
		t.Fatal(err)
	}
	want(t, on("backup", "create"), 0)
	says("repository", doctor.OK, "has 1 backup")
}
