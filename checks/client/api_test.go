package client_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/client"
)

// await polls until a job has a status.
func (s *service) await(api *client.API, id, status string) client.Info {
	s.Helper()
	var last client.Info
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		i, err := api.Job(s.Context(), id)
		if err != nil {
			s.Fatal(err)
		}
		if last = i; i.Status == status {
			return i
		}
	}
	s.Fatalf("the job is %+v, not %s", last, status)
	return last
}

func TestTheAPIOfTheRunningService(t *testing.T) {
	s := startService(t)
	api := client.NewAPI(s.url+"/", s.secret, client.APIOptions{})
	t.Run("jobs", func(t *testing.T) { s.jobs(t, api) })
	t.Run("refusals", func(t *testing.T) { s.refusals(t, api) })
	t.Run("lost answers", s.lostAnswers)
}

func (s *service) jobs(t *testing.T, api *client.API) {
	ctx := t.Context()
	probe, err := api.Enqueue(ctx, client.Job{Type: "cmsjobs.probe"})
	if err != nil {
		t.Fatal(err)
	}
	done := s.await(api, probe.ID, "completed")
	if done.Type != "cmsjobs.probe" || done.Attempts != 1 || done.StartedAt.IsZero() ||
		done.EndedAt.Before(done.StartedAt) {
		t.Errorf("%+v", done)
	}
	// A row that the service cannot run, written into the database.
	rows := newClient(t, s.db)
	bad, err := rows.Enqueue(ctx, client.Job{Type: "mail.send", Payload: map[string]int{"to": 7},
		Metadata: map[string]string{"by": "me"}})
	if err != nil {
		t.Fatal(err)
	}
	if i := s.await(api, bad.ID, "failed"); i.Error == "" || !strings.Contains(string(i.Metadata), "me") {
		t.Errorf("%+v", i)
	}
	list, err := api.Jobs(ctx, client.Filter{Type: "mail.send", Status: "failed", Limit: 5})
	if err != nil || len(list.Items) != 1 || list.Items[0].ID != bad.ID {
		t.Errorf("%+v, %v", list, err)
	}
	var refusal *client.Refusal
	if i, err := api.Requeue(ctx, bad.ID); !errors.As(err, &refusal) || refusal.Status != http.StatusConflict {
		t.Errorf("what can never run ran again: %+v, %v", i, err)
	}
	again, err := api.Requeue(ctx, probe.ID)
	if err != nil {
		t.Fatal(err)
	}
	s.await(api, again.ID, "completed")
	if err := api.Delete(ctx, bad.ID); err != nil {
		t.Error(err)
	}
	at := time.Now().Add(time.Hour).Truncate(time.Second)
	ask := client.Job{Type: "cmsjobs.probe", ID: "0190aaaa-bbbb-7ccc-8ddd-eeeeffff2000", RunAt: at, MaxAttempts: 2,
		UniqueKey: "k"}
	for existing := range 2 {
		if r, err := api.Enqueue(ctx, ask); err != nil || r.ID != ask.ID || r.Existing != (existing == 1) {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if i, err := api.Job(ctx, ask.ID); err != nil || !i.RunAt.Equal(at) || i.MaxAttempts > 2 || i.Detail != "delayed" {
		t.Errorf("%+v, %v", i, err)
	}
	// housekeeping has jobs, too
	if figures, err := api.Stats(ctx); err != nil || figures.Delayed < 1 || figures.Waiting < figures.Delayed ||
		figures.Completed < 1 || figures.SuccessRate <= 0 || figures.SuccessRate >= 1 {
		t.Errorf("%+v, %v", figures, err)
	}
	if err := api.Delete(ctx, ask.ID); err != nil {
		t.Error(err)
	}
	if err := api.Delete(ctx, probe.ID); !errors.Is(err, client.ErrConflict) {
		t.Errorf("deleting a job that is done: %v", err)
	}
}

func (s *service) refusals(t *testing.T, api *client.API) {
	ctx := t.Context()
	if _, err := api.Job(ctx, "0190aaaa-bbbb-7ccc-8ddd-eeeeffff9999"); !errors.Is(err, client.ErrNotFound) {
		t.Error(err)
	}
	_, err := api.Enqueue(ctx, client.Job{Type: "no.such.type"})
	var refusal *client.Refusal
	if !errors.Is(err, client.ErrInvalid) || !errors.As(err, &refusal) || len(refusal.Fields) != 1 ||
		refusal.Fields[0].Field != "type" || !strings.Contains(err.Error(), "no.such.type") {
		t.Error(err)
	}
	if _, err := api.Enqueue(ctx, client.Job{}); !errors.Is(err, client.ErrInvalid) {
		t.Error(err)
	}
	reader := client.NewAPI(s.url, s.token("read"), client.APIOptions{})
	if _, err := reader.Enqueue(ctx, client.Job{Type: "cmsjobs.probe"}); !errors.As(err, &refusal) ||
		refusal.Status != http.StatusForbidden {
		t.Error(err)
	}
	nobody := client.NewAPI(s.url, "cmsj_wrong", client.APIOptions{})
	if _, err := nobody.Stats(ctx); !errors.As(err, &refusal) || refusal.Status != http.StatusUnauthorized ||
		strings.Contains(err.Error(), "cmsj_wrong") {
		t.Error(err)
	}
}

// badNetwork loses the answers to the first requests, or answers "later".
type badNetwork struct {
	lose  int32
	asked atomic.Int32
}

func (n *badNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(r)
	if asked := n.asked.Add(1); err != nil || asked > n.lose {
		return answer, err
	}
	answer.Body.Close()
	if n.asked.Load() == 1 {
		return nil, errors.New("the answer is lost")
	}
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"0"}},
		Body: io.NopCloser(strings.NewReader("<html>")), Request: r}, nil
}

func (s *service) lostAnswers(t *testing.T) {
	for _, lose := range []int32{2, 100} {
		network := &badNetwork{lose: lose}
		api := client.NewAPI(s.url, s.secret, client.APIOptions{HTTP: &http.Client{Transport: network},
			Wait: func(int) time.Duration { return time.Millisecond }})
		r, err := api.Enqueue(t.Context(), client.Job{Type: "cmsjobs.probe", Queue: "cmsjobs",
			RunAt: time.Now().Add(time.Hour)})
		if (err == nil) != (lose == 2) || network.asked.Load() > 4 {
			t.Errorf("%d answers lost: %v after %d requests", lose, err, network.asked.Load())
		}
		good := client.NewAPI(s.url, s.secret, client.APIOptions{})
		list, err := good.Jobs(t.Context(), client.Filter{Type: "cmsjobs.probe", Status: "queued"})
		if err != nil || len(list.Items) != 1 || lose == 2 && list.Items[0].ID != r.ID {
			t.Fatalf("%d answers lost: %+v, %v", lose, list, err)
		}
		if err := good.Delete(t.Context(), list.Items[0].ID); err != nil {
			t.Error(err)
		}
		// What might happen twice is asked for once.
		network.asked.Store(0)
		if err := api.Delete(t.Context(), "1"); err == nil || network.asked.Load() != 1 {
			t.Errorf("a deletion was asked for %d times: %v", network.asked.Load(), err)
		}
	}
}
