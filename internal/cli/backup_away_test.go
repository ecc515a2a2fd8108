package cli

import (
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
