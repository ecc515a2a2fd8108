package web_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/queues"
)

// TestAMistypedQueueIsNotPaused refuses a name that nothing knows, unless it is forced.
func TestAMistypedQueueIsNotPaused(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	refused := s.admin("POST", "/api/v1/queues/cmsjbos/pause", nil).want(t, http.StatusNotFound)
	if !bytes.Contains(refused.body, []byte("known are cmsjobs")) {
		t.Errorf("the refusal does not name the queues: %s", refused.body)
	}
	paused := func() (names []string) {
		var list queues.QueueList
		s.admin("GET", "/api/v1/queues", nil).want(t, http.StatusOK).into(t, &list)
		for _, q := range list.Items {
			if q.Paused {
				names = append(names, q.Name)
			}
		}
		return names
	}
	if names := paused(); len(names) != 0 {
		t.Fatalf("%q are paused", names)
	}
	s.admin("POST", "/api/v1/queues/cmsjbos/pause?force=true", nil).want(t, http.StatusOK)
	if names := paused(); len(names) != 1 || names[0] != "cmsjbos" {
		t.Errorf("%q are paused, want the forced one", names)
	}
}
