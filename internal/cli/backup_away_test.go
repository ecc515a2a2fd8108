package cli

import (
	"net/http/httptest"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// TestBackupListNamesThePlaceThatIsAway has a folder and a bucket whose server
// goes down: what the folder holds is listed, and the command fails by name.
func TestBackupListNamesThePlaceThatIsAway(t *testing.T) {
	dir, _ := sampleSite(t)
	backend := s3mem.New()
	if err := backend.CreateBucket("backups"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend, gofakes3.WithoutVersioning()).Server())
	t.Cleanup(server.Close)
	on := func(args ...string) result {
		return call(t, []string{"CMSJOBS_STORAGE_S3_SECRET_KEY=hunter2"},
			append([]string{"--cms", dir, "--set", "backup.free_space=1MiB", "--set", "backup.to=local,s3",
				"--set", "storage.s3.bucket=backups", "--set", "storage.s3.endpoint=" + server.URL, "--set",
				"storage.s3.path_style=true", "--set", "storage.s3.access_key=key"}, args...)...)
	}
	want(t, on("backup", "create", "--only-files"), 0, "complete")
	want(t, on("backup", "list"), 0, "local", "s3")
	server.Close()
	want(t, on("backup", "list"), 1, "local", "complete", "destination s3", "connection refused")
	want(t, on("backup", "show", "latest"), 0, `"destination":"local"`)
	want(t, on("backup", "list", "--from", "local"), 0, "complete")
}
