package cli

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// heapPeak watches how much of the heap is in use until stop, in bytes.
func heapPeak() (stop func() uint64) {
	ctx, cancel := context.WithCancel(context.Background())
	var peak atomic.Uint64
	look := func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak.Store(max(peak.Load(), m.HeapAlloc))
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for ctx.Err() == nil {
			look()
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return func() uint64 { cancel(); <-watched; return peak.Load() }
}

// Failed jobs are retried by filter as a stream: they take more space than the
// process may use for it. CMSJOBS_SOAK=1 retries 300,000.
func TestManyMoreFailedJobsThanFitIntoMemoryAreRetried(t *testing.T) {
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
	// What is counted is in use, and not the garbage that a large heap of other tests allows.
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	stop := heapPeak()
	r := call(t, nil, dsn, "failed", "retry", "--type", "cmsjobs.probe", "--text", "no luck", "--yes")
	peak := stop()
	want(t, r, 0, fmt.Sprintf("retry: %d jobs", n))
	grown := int64(peak) - int64(before.HeapAlloc)
	t.Logf("%d jobs with %d KiB of payload each: the heap grew by %d MiB at most", n, payload>>10, grown>>20)
	if grown > allowed {
		t.Errorf("the heap grew by %d MiB, %d are allowed", grown>>20, allowed>>20)
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
