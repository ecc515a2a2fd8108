package cli

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// residentOf runs a command of the program and returns what it says, and the most
// resident memory that it had, in bytes. Garbage is collected early, so that what is
// counted is mostly in use.
func residentOf(t *testing.T, args ...string) (said string, peak int64) {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	var out jobstest.Log
	c := exec.CommandContext(t.Context(), path, args...)
	c.Env = []string{"GOGC=20", "HOME=" + t.TempDir()}
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for look := time.NewTicker(2 * time.Millisecond); ; {
		peak = max(peak, residentPeak(c.Process.Pid))
		select {
		case <-look.C:
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out.String())
			}
			return out.String(), peak
		}
	}
}

// Failed jobs are retried by filter as a stream: they take more space than the
// process may use for it. CMSJOBS_SOAK=1 retries 300,000.
func TestManyMoreFailedJobsThanFitIntoMemoryAreRetried(t *testing.T) {
	t.Parallel()
	n, payload := 16_000, 4<<10 // 64 MB of payloads, which are copied more than once
	if os.Getenv("CMSJOBS_SOAK") == "1" {
		n, payload = 300_000, 1<<10
	}
	const allowed = 56 << 20
	db := jobstest.Open(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	dsn := "--dsn=" + db.DSN
	want(t, call(t, nil, dsn, "migrate", "up"), 0)
	db.MustExec(fmt.Sprintf(`INSERT INTO failed_jobs (uuid, connection, queue, payload, exception, failed_at)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		SELECT 'u' || i, 'database', 'default', '{"uuid":"u' || i ||
		'","job":"cmsjobs.probe","type":"cmsjobs.probe","data":{"pad":"' || ? || '"}}', 'no luck',
		'2026-01-01 00:00:00' FROM n`, n),
		strings.Repeat("x", payload))
	db.MustExec("INSERT INTO failed_jobs (uuid, connection, queue, payload, exception, failed_at) VALUES ('other', " +
		"'database', 'default', '{\"job\":\"cmsjobs.probe\"}', 'another fault', '2026-01-01 00:00:00')")
	_, before := residentOf(t, dsn, "failed", "list", "--limit", "1")
	if before == 0 {
		t.Skip("this system does not tell the resident memory")
	}
	said, peak := residentOf(t, dsn, "failed", "retry", "--type", "cmsjobs.probe", "--text", "no luck", "--yes")
	if !strings.Contains(said, fmt.Sprintf("retry: %d jobs", n)) {
		t.Errorf("it says %s", said)
	}
	grown := peak - before
	t.Logf("%d jobs with %d KiB of payload each: the process grew by %d MiB at most", n, payload>>10, grown>>20)
	if grown > allowed {
		t.Errorf("the process grew by %d MiB, %d are allowed", grown>>20, allowed>>20)
	}
	var waiting, failed int
	if err := db.QueryRowx("SELECT (SELECT COUNT(*) FROM jobs), (SELECT COUNT(*) FROM failed_jobs)").Scan(&waiting,
		&failed); err != nil {
		t.Fatal(err)
	}
	if waiting != n || failed != 1 {
		t.Errorf("%d wait and %d failed, want %d and the one that another filter names", waiting, failed, n)
	}
}
