package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/storage/storagetest"
)

// TestBackupListNamesThePlaceThatIsAway has a folder and a bucket whose server
// goes down: what the folder holds is listed, and the command fails by name.
func TestBackupListNamesThePlaceThatIsAway(t *testing.T) {
	dir, _ := sampleSite(t)
	bucket := storagetest.New(t)
	on := func(args ...string) result {
		return call(t, []string{"CMSJOBS_STORAGE_S3_SECRET_KEY=" + storagetest.Secret},
			append([]string{"--cms", dir, "--set", "backup.free_space=1MiB", "--set", "backup.to=local,s3",
				"--set", "storage.s3.bucket=" + bucket.Name, "--set", "storage.s3.endpoint=" + bucket.URL, "--set",
				"storage.s3.path_style=true", "--set", "storage.s3.access_key=" + storagetest.Key}, args...)...)
	}
	want(t, on("backup", "create", "--only-files"), 0, "complete")
	want(t, on("backup", "list"), 0, "local", "s3")
	bucket.Close()
	want(t, on("backup", "list"), 1, "local", "complete", "destination s3", "connection refused")
	want(t, on("backup", "show", "latest"), 0, `"destination":"local"`)
	want(t, on("backup", "list", "--from", "local"), 0, "complete")
}

// TestBackupsOnAnotherHost has backups in a folder and, by SFTP, on another host: when
// everything here is lost, that host has all of it. Each place keeps its own number.
func TestBackupsOnAnotherHost(t *testing.T) {
	dir, db := sampleSite(t)
	server := storagetest.StartSSH(t)
	on := func(args ...string) result {
		t.Helper()
		return call(t, nil, append([]string{"--cms", dir, "--set", "backup.free_space=1MiB", "--set",
			"backup.to=local,sftp", "--set", "storage.sftp.host=" + server.Host, "--set",
			fmt.Sprintf("storage.sftp.port=%d", server.Port), "--set", "storage.sftp.user=" + server.User, "--set",
			"storage.sftp.key_file=" + server.KeyFile, "--set", "storage.sftp.dir=" + server.Dir + "/site", "--set",
			"backup.min_age=0", "--set", "backup.places.sftp.max_total=1KiB"}, args...)...)
	}
	stranger := on("--set", "storage.sftp.host_key=SHA256:other", "backup", "create", "--only-database")
	want(t, stranger, 1, server.Fingerprint, "host_key")
	here := func(args ...string) result {
		t.Helper()
		return on(append([]string{"--set", "storage.sftp.host_key=" + server.Fingerprint}, args...)...)
	}
	want(t, here("backup", "create"), 1, "sftp", "all together may take 0 MiB")
	roomy := func(args ...string) result {
		t.Helper()
		return here(append([]string{"--set", "backup.places.sftp.max_total=1GiB"}, args...)...)
	}
	want(t, roomy("backup", "create"), 0, "complete", "restored")
	want(t, roomy("backup", "list"), 0, "local", "sftp")
	want(t, roomy("backup", "verify", "latest", "--from", "sftp"), 0)

	if err := os.RemoveAll(filepath.Join(dir, "storage", "app", "cmsjobs-backups")); err != nil {
		t.Fatal(err)
	}
	var posts int
	if _, err := db.Exec("DELETE FROM posts"); err != nil {
		t.Fatal(err)
	}
	restore := []string{"backup", "restore", "latest", "--database", "--from", "sftp"}
	plan := roomy(append(restore, "--dry-run")...)
	want(t, plan, 0, "posts", "To do it: --confirm")
	word := regexp.MustCompile(`--confirm (\S+)`).FindStringSubmatch(plan.out)[1]
	want(t, roomy(append(restore, "--confirm", word)...), 0)
	if err := db.Get(&posts, "SELECT COUNT(*) FROM posts"); err != nil || posts != 300 {
		t.Errorf("%d posts after the restore, %v", posts, err)
	}
}
