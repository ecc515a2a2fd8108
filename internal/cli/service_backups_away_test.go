package cli

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestTheBackupsPageStandsWithoutItsBucket asks the running program for its
// backups while the bucket's server is down.
func TestTheBackupsPageStandsWithoutItsBucket(t *testing.T) {
	t.Parallel()
	dir, _ := sampleSite(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	s := startService(t, fmt.Sprintf("queue: {worker: false}\nschedule: {enabled: false}\nbackup: {to: [s3]}\n"+
		"storage: {s3: {bucket: site, endpoint: %q, path_style: true, access_key: key, secret_key: hunter2}}\n",
		gone.URL), "--cms="+dir)
	reader := bearer(s.token("read"))
	var page string
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		status, text := s.try("GET", "/admin/backups", "", reader)
		if status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		if page = string(text); strings.Contains(page, "cannot be listed") {
			break
		}
	}
	for _, must := range []string{"cannot be listed", "destination s3", "connection refused"} {
		if !strings.Contains(page, must) {
			t.Errorf("%q is not on the page:\n%s", must, page)
		}
	}
	if strings.Contains(page, "hunter2") {
		t.Error("the page shows the bucket's key")
	}
}
