package web_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// TestEveryFamilySpeaksItsWordsAndHearsAll puts one job into each state and
// asks for it by every word that a specification has for it, on the paths of
// all of them; the answer is in the words of the path.
func TestEveryFamilySpeaksItsWordsAndHearsAll(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	ids := map[jobs.Status]string{}
	ids[jobs.StatusProcessing] = s.enqueue(`{"type":"cache.clear"}`)
	if claimed, err := s.store.Claim(t.Context(), jobs.ClaimRequest{Worker: "t", Queues: []string{"cmsjobs"}, Limit: 1,
		Lease: 90 * time.Second}); err != nil || len(claimed) != 1 {
		t.Fatalf("%v %v", claimed, err)
	}
	ids[jobs.StatusQueued] = s.enqueue(`{"type":"mail.send","payload":{"to":"a@b"},"delay":3600}`)
	ids[jobs.StatusCancelled] = s.enqueue(`{"type":"mail.send","payload":{"to":"a@b"},"delay":3600}`)
	s.admin("POST", "/api/v1/jobs/"+ids[jobs.StatusCancelled]+"/cancel", nil).want(t, 200)
	ids[jobs.StatusFailed] = s.enqueue(`{"type":"mail.send","payload":{"to":"a@b","subject":"fail"},"queue":"other"}`)
	ids[jobs.StatusCompleted] = s.enqueue(`{"type":"mail.send","payload":{"to":"a@b"},"queue":"other"}`)
	s.workOn("other")

	heard := map[jobs.Status][]string{
		jobs.StatusQueued:     {"queued", "pending", "PENDING", "waiting", "scheduled", "delayed"},
		jobs.StatusProcessing: {"processing", "running", "RUNNING"},
		jobs.StatusCompleted:  {"completed", "succeeded", "COMPLETE", "complete"}, jobs.StatusFailed: {
			"failed", "FAILED"}, jobs.StatusCancelled: {"cancelled", "canceled"},
	}
	spoken := map[string]map[jobs.Status]string{
		"/api/v1/jobs": {jobs.StatusQueued: "queued", jobs.StatusProcessing: "processing",
			jobs.StatusCompleted: "completed", jobs.StatusFailed: "failed", jobs.StatusCancelled: "cancelled"},
		"/api/jobs": {jobs.StatusQueued: "pending", jobs.StatusProcessing: "processing",
			jobs.StatusCompleted: "completed", jobs.StatusFailed: "failed", jobs.StatusCancelled: "cancelled"},
		"/api/admin/jobs": {jobs.StatusQueued: "queued", jobs.StatusProcessing: "running",
			jobs.StatusCompleted: "succeeded", jobs.StatusFailed: "failed", jobs.StatusCancelled: "cancelled"},
	}
	for path, words := range spoken {
		for status, synonyms := range heard {
			var one struct{ ID, Status string }
			s.admin("GET", path+"/"+ids[status], nil).want(t, 200).into(t, &one)
			if one.Status != words[status] {
				t.Errorf("GET %s/:id says %q of a %s job, want %q", path, one.Status, status, words[status])
			}
			for _, word := range synonyms {
				var list struct{ Items []struct{ ID, Status string } }
				s.admin("GET", path+"?status="+url.QueryEscape(word), nil).want(t, 200).into(t, &list)
				if len(list.Items) != 1 || list.Items[0].ID != ids[status] || list.Items[0].Status != words[status] {
					t.Errorf("GET %s?status=%s: %+v", path, word, list.Items)
				}
			}
		}
	}
	// The words for the type, its payload, its moment and its tries.
	for _, body := range []string{
		`{"topic":"mail.send","payload":{"to":"a@b"},"runAt":"2036-01-02T03:04:05Z","maxRetries":4}`,
		`{"type":"mail.send","data":{"to":"a@b"},"run_at":"2036-01-02T03:04:05Z","max_retries":4}`,
		`{"jobType":"mail.send","payload":{"to":"a@b"},"scheduledFor":"2036-01-02T03:04:05Z","maxAttempts":5}`,
		`{"type":"mail.send","payload":{"to":"a@b"},"runAt":"2036-01-02T04:04:05+01:00","max_attempts":5}`,
	} {
		var made struct{ ID, Topic, Status string }
		s.admin("POST", "/api/jobs/enqueue", body).want(t, 201).into(t, &made)
		var job struct {
			Type        string
			Payload     struct{ To string }
			RunAt       time.Time `json:"run_at"`
			MaxAttempts int       `json:"max_attempts"`
		}
		s.admin("GET", "/api/v1/jobs/"+made.ID, nil).want(t, 200).into(t, &job)
		if made.Topic != "mail.send" || made.Status != "pending" || job.Type != "mail.send" ||
			job.Payload.To != "a@b" || !job.RunAt.Equal(time.Date(2036, 1, 2, 3, 4, 5, 0, time.UTC)) ||
			job.MaxAttempts != 5 {
			t.Errorf("%s became %+v %+v", body, made, job)
		}
	}
	// /api/v1 has one name for each.
	for _, body := range []string{`{"topic":"cache.clear"}`, `{"type":"cache.clear","maxRetries":4}`,
		`{"type":"cache.clear","runAt":"2036-01-02T03:04:05Z"}`} {
		s.admin("POST", "/api/v1/jobs", body).want(t, 422)
	}
	s.admin("POST", "/api/jobs/enqueue", `{"topic":"cache.clear","type":"mail.send"}`).want(t, 422)
	s.admin("POST", "/api/jobs/enqueue", `{"topic":"cache.clear","TOPIC":"mail.send"}`).want(t, 400)
}
