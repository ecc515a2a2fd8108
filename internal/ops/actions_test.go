package ops_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/history"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

func registry() *jobs.Registry {
	r := jobs.NewRegistry()
	for _, name := range []string{"test.plain", "mail.send", "test.secret"} {
		jobs.Handle(r, jobs.Kind[json.RawMessage]{Name: name, Policy: jobs.Policy{Confidential: name == "test.secret"}},
			func(context.Context, jobs.Job, json.RawMessage) error { return nil })
	}
	return r
}

// shop is a queue with jobs of all statuses.
type shop struct {
	t       *testing.T
	queue   *queue.Store
	history *history.Store
	actions ops.Actions
}

func newShop(t *testing.T) *shop {
	t.Helper()
	db := jobstest.Migrated(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	found, err := tables.Open(t.Context(), db.DB, tables.Options{Registry: registry(), DefaultQueue: "cmsjobs"})
	if err != nil {
		t.Fatal(err)
	}
	store, err := queue.New(t.Context(), found)
	if err != nil {
		t.Fatal(err)
	}
	past := history.New(found)
	return &shop{t, store, past, ops.Actions{Change: past, Enqueue: store, Registry: registry()}}
}

// job puts a job into the queue and brings it into a status.
func (s *shop) job(status jobs.Status, n jobs.Spec) jobs.Record {
	s.t.Helper()
	n.Type = cmp.Or(n.Type, "test.plain")
	if len(n.Data) == 0 {
		n.Data = json.RawMessage(`{}`)
	}
	receipt, err := s.queue.Enqueue(s.t.Context(), n)
	if err != nil {
		s.t.Fatal(err)
	}
	if status != jobs.StatusQueued {
		list, err := s.queue.Claim(s.t.Context(), jobs.ClaimRequest{Worker: "h:1:x", Queues: []string{"cmsjobs"},
			Limit: 1, Lease: time.Minute})
		if err != nil || len(list) != 1 {
			s.t.Fatalf("claimed %d jobs: %v", len(list), err)
		}
		outcome := map[jobs.Status]jobs.Outcome{jobs.StatusFailed: jobs.Failed,
			jobs.StatusCompleted: jobs.Completed}[status]
		if status != jobs.StatusProcessing {
			errs, err := s.queue.Settle(s.t.Context(), []jobs.Settlement{
				{Claimed: list[0], Outcome: outcome, Worker: "h:1:x", Error: "it broke"}})
			if err = errors.Join(append(errs, err)...); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	return s.find(receipt[0].UUID, status)
}

func (s *shop) find(id string, status jobs.Status) jobs.Record {
	s.t.Helper()
	r, err := s.history.Job(s.t.Context(), id)
	if err != nil || r.Status != status {
		s.t.Fatalf("the job is %s, not %s: %v", r.Status, status, err)
	}
	return r
}

// TestActionsFitStatuses does every action with a job of every status: it is done,
// or refused as a conflict that leaves the job as it was.
func TestActionsFitStatuses(t *testing.T) {
	all := []ops.Action{ops.Retry, ops.Cancel, ops.Delete, ops.RunNow}
	for status, fits := range map[jobs.Status][]ops.Action{
		jobs.StatusQueued: {ops.Cancel, ops.RunNow}, jobs.StatusProcessing: {ops.Cancel}, jobs.StatusFailed: {
			ops.Retry, ops.Delete}, jobs.StatusCompleted: nil,
	} {
		for _, action := range all {
			t.Run(fmt.Sprintf("%s-%s", action, status), func(t *testing.T) {
				s := newShop(t)
				r := s.job(status, jobs.Spec{})
				err := s.actions.One(t.Context(), action, r)
				if slices.Contains(fits, action) {
					if err != nil {
						t.Error(err)
					}
					return
				}
				var refusal *ops.Refusal
				if !errors.Is(err, jobs.ErrConflict) || !errors.As(err, &refusal) || refusal.Form == "" {
					t.Errorf("it is not refused as a conflict: %v", err)
				}
				s.find(r.UUID, status)
			})
		}
	}
}

// PHP's own waiting job is shown and never touched; its failed one may be retried.
func TestForeignJobsAreLeftAlone(t *testing.T) {
	for _, action := range []ops.Action{ops.Cancel, ops.RunNow} {
		if err := ops.Fits(action, jobs.Record{Status: jobs.StatusQueued, Foreign: true}); !errors.Is(err,
			jobs.ErrConflict) {
			t.Errorf("%s of PHP's waiting job: %v", action, err)
		}
	}
	for _, action := range []ops.Action{ops.Retry, ops.Delete} {
		if err := ops.Fits(action, jobs.Record{Status: jobs.StatusFailed, Foreign: true}); err != nil {
			t.Errorf("%s of PHP's failed job: %v", action, err)
		}
	}
}

// A record is a moment old: the job may have changed since.
func TestAChangedJobIsAConflict(t *testing.T) {
	s := newShop(t)
	r := s.job(jobs.StatusFailed, jobs.Spec{})
	if err := s.actions.One(t.Context(), ops.Delete, r); err != nil {
		t.Fatal(err)
	}
	for _, action := range []ops.Action{ops.Delete, ops.Retry} {
		if err := s.actions.One(t.Context(), action, r); !errors.Is(err, jobs.ErrConflict) {
			t.Errorf("%s of a job that is gone: %v", action, err)
		}
	}
	due := s.job(jobs.StatusQueued, jobs.Spec{})
	if err := s.actions.One(t.Context(), ops.RunNow, due); err != nil {
		t.Errorf("a job that is due already: %v", err)
	}
}

func TestRemove(t *testing.T) {
	s := newShop(t)
	for _, status := range []jobs.Status{jobs.StatusFailed, jobs.StatusQueued} {
		r := s.job(status, jobs.Spec{})
		if err := s.actions.Remove(t.Context(), r); err != nil {
			t.Errorf("a %s job: %v", status, err)
		}
		if again, err := s.history.Job(t.Context(), r.UUID); err == nil && again.Status == status {
			t.Errorf("the %s job is still there", status)
		}
	}
	for _, status := range []jobs.Status{jobs.StatusProcessing, jobs.StatusCompleted} {
		r := s.job(status, jobs.Spec{})
		if err := s.actions.Remove(t.Context(), r); !errors.Is(err, jobs.ErrConflict) {
			t.Errorf("a %s job: %v", status, err)
		}
		s.find(r.UUID, status)
	}
}

// TestRunAgain: the same job runs again if it can; a completed one becomes a new job
// with its payload.
func TestRunAgain(t *testing.T) {
	s := newShop(t)
	for status, n := range map[jobs.Status]jobs.Spec{jobs.StatusFailed: {}, jobs.StatusQueued: {Delay: time.Hour}} {
		r := s.job(status, n)
		id, err := s.actions.RunAgain(t.Context(), r)
		if err != nil || id != r.UUID {
			t.Fatalf("a %s job: %q %v", status, id, err)
		}
		if again := s.find(id, jobs.StatusQueued); again.RunAt.After(time.Now().Add(time.Minute)) {
			t.Errorf("the %s job is due at %s", status, again.RunAt)
		}
		if err := s.actions.One(t.Context(), ops.Cancel, s.find(id, jobs.StatusQueued)); err != nil {
			t.Fatal(err)
		}
	}
	r := s.job(jobs.StatusCompleted, jobs.Spec{Data: json.RawMessage(`{"a":1}`)})
	id, err := s.actions.RunAgain(t.Context(), r)
	if err != nil || id == r.UUID {
		t.Fatalf("a completed job: %q %v", id, err)
	}
	view := ops.Viewer{Registry: registry()}.Job(s.find(id, jobs.StatusQueued))
	if string(view.Payload) != `{"a":1}` {
		t.Errorf("its payload is %s", view.Payload)
	}
	if err := s.actions.One(t.Context(), ops.Cancel, s.find(id, jobs.StatusQueued)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.actions.RunAgain(t.Context(), s.job(jobs.StatusProcessing, jobs.Spec{})); !errors.Is(err,
		jobs.ErrConflict) {
		t.Errorf("a running job: %v", err)
	}
	if _, err := s.actions.RunAgain(t.Context(), jobs.Record{Status: jobs.StatusCompleted,
		Payload: []byte("no JSON")}); !errors.Is(err, jobs.ErrConflict) {
		t.Errorf("a job that cannot be read: %v", err)
	}
}

// What the history does not keep of a payload is not taken for an empty one: such a
// job would run again and do something else.
func TestAPayloadThatIsNotKeptDoesNotRunAgain(t *testing.T) {
	s := newShop(t)
	large := json.RawMessage(`{"a":"` + strings.Repeat("x", 5000) + `"}`)
	for name, n := range map[string]jobs.Spec{"a large one": {Data: large},
		"a confidential one": {Type: "test.secret", Data: json.RawMessage(`{"a":1}`)}} {
		r := s.job(jobs.StatusCompleted, n)
		if id, err := s.actions.RunAgain(t.Context(), r); !errors.Is(err, jobs.ErrConflict) {
			t.Errorf("%s runs again, as %q: %v", name, id, err)
		}
		if !r.PayloadOmitted || !(ops.Viewer{Registry: registry()}).Job(r).PayloadOmitted {
			t.Errorf("%s is not said to be omitted", name)
		}
	}
	if r := s.job(jobs.StatusCompleted, jobs.Spec{}); r.PayloadOmitted {
		t.Error("an empty payload is said to be omitted")
	}
}

// TestMany changes as many as were counted, the oldest, and only what an action fits.
func TestMany(t *testing.T) {
	s := newShop(t)
	const all, wanted = 1203, 1101 // more than two steps
	var specs []jobs.Spec
	for range all {
		specs = append(specs, jobs.Spec{Type: "test.plain", Data: json.RawMessage(`{}`), Delay: time.Hour})
	}
	if _, err := s.queue.Enqueue(t.Context(), specs...); err != nil {
		t.Fatal(err)
	}
	var reports []int64
	n, err := s.actions.Many(t.Context(), ops.Cancel, jobs.Filter{}, wanted, func(done int64) {
		reports = append(reports, done)
	})
	if err != nil || n != wanted || len(reports) < 2 || !slices.IsSorted(reports) || reports[len(reports)-1] != wanted {
		t.Errorf("changed %d (%v), reported %v", n, err, reports)
	}
	left, err := s.history.Count(t.Context(), jobs.Filter{Statuses: []jobs.Status{jobs.StatusQueued}})
	if err != nil || left != all-wanted {
		t.Errorf("left are %d (%v)", left, err)
	}
	failed := jobs.Filter{Statuses: []jobs.Status{jobs.StatusFailed, jobs.StatusCompleted}}
	if n, err := s.actions.Many(t.Context(), ops.Cancel, failed, all, func(int64) {}); n != 0 || err != nil {
		t.Errorf("cancelled %d that have ended (%v)", n, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := s.actions.Many(ended, ops.Cancel, jobs.Filter{}, all, func(int64) {}); n != 0 ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("after its end %d were changed (%v)", n, err)
	}
}

func TestSelected(t *testing.T) {
	processing := []jobs.Status{jobs.StatusProcessing}
	for name, c := range map[string]struct {
		action ops.Action
		asked  []jobs.Status
		want   []jobs.Status
	}{
		"running ones are not cancelled unasked": {ops.Cancel, nil, []jobs.Status{jobs.StatusQueued}},
		"running ones are cancelled if asked":    {ops.Cancel, processing, processing},
		"failed ones are retried":                {ops.Retry, nil, []jobs.Status{jobs.StatusFailed}},
		"others are left out": {ops.Delete, []jobs.Status{jobs.StatusQueued, jobs.StatusFailed},
			[]jobs.Status{jobs.StatusFailed}},
		"none fits": {ops.RunNow, processing, nil},
	} {
		f, none := ops.Selected(c.action, jobs.Filter{Statuses: c.asked})
		if none != (len(c.want) == 0) || !none && !slices.Equal(f.Statuses, c.want) {
			t.Errorf("%s: %v %v", name, f.Statuses, none)
		}
	}
	if _, known := ops.ParseAction("explode"); known {
		t.Error("an action that is none")
	}
}
