package cms

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// The name is sha1("illuminate:queue:restart"), worked out apart from the code.
const restartFile = "framework/cache/data/ee/2f/ee2f842aa7bb1f53edf3a2ed2c09a1807ffa6c90"

func TestQueueRestartIsReadFromTheFileCache(t *testing.T) {
	s := &Site{Root: t.TempDir(), Env: Env{}}
	if at, err := s.QueueRestartedAt(context.Background(), ""); err != nil || !at.IsZero() {
		t.Fatalf("without a cache: %v, %v", at, err)
	}
	path := filepath.Join(s.Storage(), filepath.FromSlash(restartFile))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("9999999999i:1700000000;"), 0o644); err != nil {
		t.Fatal(err)
	}
	at, err := s.QueueRestartedAt(context.Background(), "")
	if err != nil || at.Unix() != 1700000000 {
		t.Errorf("%v, %v", at, err)
	}
}

func TestQueueRestartIsReadFromTheDatabaseCache(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			db := jobstest.Open(t, engine)
			s := &Site{DB: db.DB, Env: Env{"CACHE_STORE": "database", "APP_NAME": "My Site"}}
			if at, err := s.QueueRestartedAt(context.Background(), ""); err != nil || !at.IsZero() {
				t.Fatalf("without the table: %v, %v", at, err)
			}
			db.MustExec("CREATE TABLE cache (" + s.quote("key") + " VARCHAR(255) PRIMARY KEY, value TEXT, expiration " +
				"BIGINT)")
			db.MustExec("INSERT INTO cache VALUES ('my-site-cache-illuminate:queue:restart', 'i:1700000000;', " +
				"9999999999)")
			at, err := s.QueueRestartedAt(context.Background(), "")
			if err != nil || at.Unix() != 1700000000 {
				t.Errorf("%v, %v", at, err)
			}
		})
	}
}
