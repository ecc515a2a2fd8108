package php_test

import (
	"slices"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func TestSmoke(t *testing.T) { jobstest.EachMySQL(t, testSmoke) }

func testSmoke(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine, 90*time.Second)
	s.push("default", "delete", "{}", "print", "{}", "fail", "{}")
	stop := s.start(s.config("default"))
	s.drained("default", 20*time.Second)
	stop()
	for probe, events := range s.events() {
		t.Log(probe, events)
	}
	var lines []string
	if err := s.db.Select(&lines, "SELECT line FROM cmsjobs_job_logs ORDER BY id"); err != nil || !slices.Equal(lines, []string{"hello    junk from a job", "and stderr", "no end of line"}) {
		t.Errorf("the log has %q, %v", lines, err)
	}
}
