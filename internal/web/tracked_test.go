package web_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// TestAStartedJobThatFailsSaysWhyAndWhenItsNextTryIs follows a job that was
// started by a button, through its first failure.
func TestAStartedJobThatFailsSaysWhyAndWhenItsNextTryIs(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	id := s.enqueue(`{"type":"cache.clear"}`)
	page := "/admin/usage?job=" + id
	v := s.visitor(t).signIn("admin")
	v.get(page).sees("Waiting to start")
	claimed, err := s.store.Claim(t.Context(), jobs.ClaimRequest{Worker: "test", Queues: []string{"cmsjobs"}, Limit: 1,
		Lease: time.Minute})
	if err != nil || len(claimed) != 1 {
		t.Fatalf("%v, %v", claimed, err)
	}
	end := jobs.Settlement{Claimed: claimed[0], Outcome: jobs.Retried, Delay: time.Hour,
		Error: "403: the access key is not known"}
	if _, err := s.store.Settle(t.Context(), []jobs.Settlement{end}); err != nil {
		t.Fatal(err)
	}
	v.get(page).sees("Failed:", "403: the access key is not known", "The next attempt begins", "in 59 min")
	if strings.Contains(v.page, "Waiting to start") {
		t.Error("it waits to start, and has failed")
	}
}

// TestADeliveryWithoutAnAnswerSaysSo: its status is 0, which is none of HTTP.
func TestADeliveryWithoutAnAnswerSaysSo(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished, hostile)
	s.visitor(t).signIn("admin").get("/admin/webhooks").sees("no response")
}
