package explain_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// due is a job that nothing holds back, on a queue with one free worker.
func due() explain.Snapshot {
	return explain.Snapshot{
		Job: jobs.Record{Type: "mail.send", Queue: "cmsjobs", Status: jobs.StatusQueued, RunAt: now.Add(-time.Minute),
			MaxAttempts: 3},
		Now: now, Known: true, Policy: jobs.DefaultPolicy(),
		Workers: []jobs.WorkerRecord{
			{Alive: true, WorkerInfo: jobs.WorkerInfo{ID: "w", Queues: []string{"cmsjobs"}, Slots: 2}}},
	}
}

func TestEachReasonIsFound(t *testing.T) {
	for _, c := range []struct {
		code, says string
		change     func(*explain.Snapshot)
	}{
		{"ready", "next poll", func(*explain.Snapshot) {}},
		{"behind", "7 jobs are before", func(s *explain.Snapshot) { s.Ahead = 7 }},
		{"not_due", "2 h 5 min", func(s *explain.Snapshot) { s.Job.RunAt = now.Add(2*time.Hour + 5*time.Minute) }},
		{"retrying", "451 later", func(s *explain.Snapshot) {
			s.Job.RunAt, s.Job.Attempt, s.Job.Error = now.Add(time.Minute), 1, "451 later\nstack"
		}},
		{"paused", "paused", func(s *explain.Snapshot) { s.Paused = true }},
		{"breaker", "smtp is down", func(s *explain.Snapshot) {
			s.Breakers = []explain.Breaker{{Name: "s3", Types: []string{"backup.generate"}},
				{Name: "smtp", Types: []string{"mail.send"}, Until: now.Add(time.Minute)}}
		}},
		{"type_limit", "At most 2", func(s *explain.Snapshot) { s.Policy.Limit, s.Running = 2, 2 }},
		{"foreign", "PHP", func(s *explain.Snapshot) { s.Job.Foreign, s.Known = true, false }},
		{"unreadable", "not JSON", func(s *explain.Snapshot) {
			s.Known, s.Job.Type, s.Job.Payload = false, "",
				[]byte("no JSON")
		}},
		{"unknown_kind", `"mail.send"`, func(s *explain.Snapshot) { s.Known = false }},
		{"disabled", "JOBS_ENABLED", func(s *explain.Snapshot) { s.JobsDisabled = true }},
		{"no_worker", "No worker is alive", func(s *explain.Snapshot) { s.Workers[0].Alive = false }},
		{"no_worker", "No worker is alive", func(s *explain.Snapshot) { s.Workers[0].Status = "stopping" }},
		{"no_worker", "--queue=cmsjobs", func(s *explain.Snapshot) { s.Workers[0].Queues = []string{"other"} }},
		{"no_worker_for_type", "older version", func(s *explain.Snapshot) { s.Workers[0].Types = []string{"cache.clear"} }},
		{"busy", "slots", func(s *explain.Snapshot) { s.Workers[0].Running = make([]jobs.RunningJob, 2) }},
		{"running", "attempt 1 of 3", func(s *explain.Snapshot) {
			s.Job.Status, s.Job.Attempt, s.Job.StartedAt = jobs.StatusProcessing, 1, now.Add(-time.Second)
		}},
		{"running", "on a worker.", func(s *explain.Snapshot) {
			s.Job.Status, s.Job.Attempt = jobs.StatusProcessing,
				1
		}},
		{"running", "attempt 2.", func(s *explain.Snapshot) { // by a queue:work, as far as is known
			s.Job.Foreign, s.Job.Status, s.Job.Attempt = true, jobs.StatusProcessing, 2
		}},
		{"running", "attempt 2, in the PHP process 4711 of web1:1:x, for 40 s. It has no time-out.",
			func(s *explain.Snapshot) { runsInPHP(s, time.Time{}) }},
		{"running", "for 40 s. At its time-out it is ended.", func(s *explain.Snapshot) {
			runsInPHP(s, now.Add(20*time.Second))
		}},
		{"stalled", "longer than retry_after", func(s *explain.Snapshot) {
			s.Job.Foreign, s.Job.Status, s.Job.Detail = true, jobs.StatusProcessing, "stalled"
		}},
		{"stalled", "lease", func(s *explain.Snapshot) {
			s.Job.Status, s.Job.Detail = jobs.StatusProcessing,
				"stalled"
		}},
		{"ended", "550 no such user", func(s *explain.Snapshot) {
			s.Job.Status, s.Job.Error = jobs.StatusFailed,
				"550 no such user"
		}},
		{"ended", "done", func(s *explain.Snapshot) { s.Job.Status = jobs.StatusCompleted }},
	} {
		s := due()
		c.change(&s)
		got := explain.Job(s)
		i := slices.IndexFunc(got, func(r explain.Reason) bool { return r.Code == c.code })
		if i < 0 || !strings.Contains(got[i].Text, c.says) {
			t.Errorf("%s (%q): %+v", c.code, c.says, got)
		}
		if len(got) != 1 {
			t.Errorf("%s: one cause gives %d reasons: %+v", c.code, len(got), got)
		}
	}
}

func runsInPHP(s *explain.Snapshot, deadline time.Time) {
	s.Job.Foreign, s.Job.Status, s.Job.Attempt, s.Job.StartedAt = true, jobs.StatusProcessing, 2,
		now.Add(-40*time.Second)
	s.Job.Worker, s.Job.Process, s.Job.Deadline = "web1:1:x", 4711, deadline
}

// A running job says until when it may run.
func TestARunningJobOfPHPsNamesItsTimeout(t *testing.T) {
	s := due()
	runsInPHP(&s, now.Add(20*time.Second))
	if got := explain.Job(s); len(got) != 1 || !got[0].Until.Equal(now.Add(20*time.Second)) {
		t.Errorf("%+v", got)
	}
}

func TestSeveralReasonsAreAllNamed(t *testing.T) {
	s := due()
	s.Paused, s.Job.RunAt, s.Workers = true, now.Add(time.Hour), nil
	var codes []string
	for _, r := range explain.Job(s) {
		codes = append(codes, r.Code)
	}
	if want := []string{"not_due", "paused", "no_worker"}; !slices.Equal(codes, want) {
		t.Errorf("%v, want %v", codes, want)
	}
}
