package cli

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/storage/storagetest"
)

// TestBackupListNamesThePlaceThatIsAway has a folder and a bucket whose server
// goes down: what the folder holds is listed, and the command fails by name.
func TestBackupListNamesThePlaceThatIsAway(t *testing.T) {
	t.Parallel()
	dir, _ := sampleSite(t)
	bucket := storagetest.New(t)
	on := func(args ...string) result {
		t.Helper()
		return onBucket(t, dir, bucket, append([]string{"--set", "backup.to=local,s3"}, args...)...)
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
	t.Parallel()
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

// onBucket calls the program on a site whose bucket is given.
func onBucket(t *testing.T, dir string, bucket *storagetest.Bucket, args ...string) result {
	t.Helper()
	return call(t, []string{"CMSJOBS_STORAGE_S3_SECRET_KEY=" + storagetest.Secret},
		append([]string{"--cms", dir, "--set", "backup.free_space=1MiB", "--set", "storage.s3.bucket=" + bucket.Name,
			"--set", "storage.s3.endpoint=" + bucket.URL, "--set", "storage.s3.path_style=true", "--set",
			"storage.s3.access_key=" + storagetest.Key}, args...)...)
}

// TestAnUploadTakesTheTimeOfItsPlacesBandwidth has the program copy a file that cannot
// be compressed, with a limit and without one at the other place. A machine that is busy
// takes longer; none is faster.
func TestAnUploadTakesTheTimeOfItsPlacesBandwidth(t *testing.T) {
	t.Parallel()
	const rate, size, least = 64 << 10, 256 << 10, 3 * time.Second // 4 s, and its first piece is not waited for
	dir, _ := sampleSite(t)
	uploads := filepath.Join(dir, "public", "storage")
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content) // it never fails
	if err := errors.Join(os.RemoveAll(filepath.Join(uploads, "photos")),
		os.WriteFile(filepath.Join(uploads, "noise.bin"), content, 0o644)); err != nil {
		t.Fatal(err)
	}
	bucket, server := storagetest.New(t), storagetest.StartSSH(t)
	for _, place := range []string{"s3", "sftp"} {
		args := []string{"--set", "backup.to=" + place, "--set", "backup.verify=off", "--set",
			fmt.Sprintf("backup.places.%s.bandwidth=%d", place, rate), "--set", "storage.sftp.host=" + server.Host,
			"--set", fmt.Sprintf("storage.sftp.port=%d", server.Port), "--set", "storage.sftp.user=" + server.User,
			"--set", "storage.sftp.key_file=" + server.KeyFile, "--set", "storage.sftp.host_key=" + server.Fingerprint,
			"--set", "storage.sftp.dir=" + server.Dir + "/site", "backup", "create", "--only-files", "--full"}
		began := time.Now()
		want(t, onBucket(t, dir, bucket, args...), 0)
		if took := time.Since(began); took < least {
			t.Errorf("%s: %d bytes at %d bytes a second took %v", place, size, rate, took)
		}
	}
}

// TestDoctorSaysHowABucketProtectsBackups has buckets without and with object lock.
func TestDoctorSaysHowABucketProtectsBackups(t *testing.T) {
	t.Parallel()
	dir, _ := sampleSite(t)
	for says, bucket := range map[string]*storagetest.Bucket{
		"s3 keeps neither versions nor locks":                                 storagetest.New(t),
		"s3 locks each new object for 2 days: nobody deletes it before":       storagetest.NewLocked(t, 2),
		"s3 keeps deleted objects as older versions, without a lock: who may": storagetest.NewLocked(t, 0),
	} {
		r := onBucket(t, dir, bucket, "--set", "backup.to=local,s3", "doctor")
		if !strings.Contains(strings.Join(strings.Fields(r.out), " "), says) {
			t.Errorf("no %q in\n%s%s", says, r.out, r.err)
		}
	}
}
