package ops_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
)

func viewer(t *testing.T, to redact.Audience) ops.Viewer {
	t.Helper()
	rules, err := redact.NewRules([]string{"test.plain:card"}, registry())
	if err != nil {
		t.Fatal(err)
	}
	return ops.Viewer{Mask: rules, To: to, Registry: registry()}
}

const secret = "hunter2hunter2"

// Whatever a job, a server or a person wrote is masked in every view.
func TestViewsMaskSecrets(t *testing.T) {
	says := "login failed: password=" + secret
	payload := `{"card":"` + secret + `","password":"` + secret + `","ok":"seen"}`
	job := jobs.Record{UUID: "u", Type: "test.plain", Payload: []byte(payload), Error: says,
		Result: json.RawMessage(payload), Progress: &jobs.Progress{Note: says}}
	for name, to := range map[string]redact.Audience{"reader": redact.Readers, "operator": redact.Operators} {
		v := viewer(t, to)
		views := map[string]any{
			"job":   v.Job(job),
			"run":   v.Run(jobs.RunRecord{Type: "test.plain", Error: says, Result: json.RawMessage(payload)}),
			"group": v.FailureGroup(jobs.FailureGroup{Message: says}), "lines": v.Lines([]jobs.LogLine{{Text: says}}),
			"worker": v.Worker(jobs.WorkerRecord{
				WorkerInfo: jobs.WorkerInfo{Running: []jobs.RunningJob{{Progress: &jobs.Progress{Note: says}}}}}),
			"schedule": v.Schedule(jobs.ScheduleRecord{Type: "test.plain", Data: json.RawMessage(payload)}),
			"reasons":  v.Reasons([]explain.Reason{{Text: says, Args: []any{says, 7}}}),
		}
		for view, value := range views {
			text, err := json.Marshal(value)
			if err != nil || strings.Contains(string(text), secret) || !strings.Contains(string(text), redact.Mask) {
				t.Errorf("to a %s the %s is %s (%v)", name, view, text, err)
			}
		}
	}
	if job.Progress.Note != says {
		t.Error("showing a job changes it")
	}
	if open := (ops.Viewer{Registry: registry()}).Job(job); open.Error != says ||
		!strings.Contains(string(open.Payload), secret) {
		t.Errorf("the administrator of the host sees %+v", open)
	}
}

// Readers see neither the text of mails nor addresses inside the network.
func TestReadersSeeLess(t *testing.T) {
	mail := jobs.Record{UUID: "u", Type: "mail.send",
		Payload: []byte(`{"to":"a@example.org","body":"the reset link"}`), Error: "dial tcp 10.1.2.3:25: refused"}
	reads, runs := viewer(t, redact.Readers).Job(mail), viewer(t, redact.Operators).Job(mail)
	if strings.Contains(string(reads.Payload), "reset") || strings.Contains(reads.Error, "10.1.2.3") {
		t.Errorf("a reader sees %s %s", reads.Payload, reads.Error)
	}
	if !strings.Contains(string(runs.Payload), "reset") || !strings.Contains(runs.Error, "10.1.2.3") {
		t.Errorf("an operator sees %s %s", runs.Payload, runs.Error)
	}
}

type letter struct {
	To   string `json:"to" synonyms:"recipient,recipients"`
	Body string `json:"body"`
	Card struct {
		Number string `json:"number" synonyms:"pan"`
	} `json:"card"`
	Cards []struct {
		Number string `json:"number" synonyms:"pan"`
	} `json:"cards"`
}

// A row by SQL may spell a field by any name that its type reads. It is hidden by
// whichever name it has there, whichever name the configuration gives, and
// whichever name the row gives its type.
func TestAFieldIsHiddenByEachOfItsNames(t *testing.T) {
	registry := jobs.NewRegistry()
	jobs.Handle(registry, jobs.Kind[letter]{Name: "mail.send"}, func(context.Context, jobs.Job, letter) error {
		return nil
	})
	registry.Alias("email.send", "mail.send")
	for _, path := range []string{"mail.send:to", "mail.send:recipient", "email.send:Recipients", "to"} {
		rules, err := redact.NewRules([]string{path, "mail.send:card.number", "mail.send:cards.*.PAN"}, registry)
		if err != nil {
			t.Fatal(err)
		}
		for _, payload := range []string{`{"to":"X"}`, `{"recipient":"X"}`, `{"recipients":["X"]}`, `{"Recipient":"X"}`,
			`{"TO":"X"}`, `{"re-cipient":"X"}`, `{"body":"X"}`, `{"Body":"X"}`, `{"BODY":"X"}`, `{"b_o_d_y":"X"}`,
			`{"card":{"pan":"X"}}`, `{"Card":{"Number":"X"}}`, `{"cards":[{"pan":"X"}]}`, `{"cards":[{"number":"X"}]}`,
			`{"data":{"recipient":"X","Body":"X"}}`} {
			for _, jobType := range []string{"mail.send", "email.send"} {
				for name, view := range map[string]any{
					"the job": ops.Viewer{Mask: rules, Registry: registry}.Job(jobs.Record{Type: jobType,
						Payload: []byte(`{"type":"` + jobType + `","data":` + payload + `}`)}),
					"the schedule": ops.Viewer{Mask: rules, Registry: registry}.Schedule(jobs.ScheduleRecord{
						Type: jobType, Data: json.RawMessage(payload)}),
				} {
					text, err := json.Marshal(view)
					if err != nil || strings.Contains(string(text), "X") ||
						!strings.Contains(string(text), redact.Mask) {
						t.Errorf("%s hides %s of %s in %s as %s (%v)", path, payload, jobType, name, text, err)
					}
				}
			}
		}
	}
	rules, err := redact.NewRules(nil, registry)
	if err != nil {
		t.Fatal(err)
	}
	view := ops.Viewer{Mask: rules, To: redact.Operators, Registry: registry}.Job(jobs.Record{Type: "mail.send",
		Payload: []byte(`{"type":"mail.send","data":{"recipient":"X","Body":"Y"}}`)})
	if string(view.Payload) != `{"Body":"Y","recipient":"X"}` {
		t.Errorf("an operator sees %s", view.Payload)
	}
}

// A view is JSON whatever the row holds: lists are [], times are UTC, an id is there.
func TestViewsAreAlwaysJSON(t *testing.T) {
	v := viewer(t, redact.Readers)
	zone := time.FixedZone("+07", 7*3600)
	for _, payload := range []string{"", "not JSON", "\xff\x00", `{"data":{"command":"O:8:\"stdClass\""}}`, "null"} {
		view := v.Job(jobs.Record{ID: 7, Payload: []byte(payload), Foreign: true,
			RunAt: time.Date(2026, 1, 1, 7, 0, 0, 0, zone)})
		text, err := json.Marshal(view)
		if err != nil || view.ID != "7" || !strings.Contains(string(text), `"run_at":"2026-01-01T00:00:00Z"`) ||
			strings.Contains(string(text), "stdClass") || strings.Contains(string(text), "started_at") {
			t.Errorf("%q is shown as %s (%v)", payload, text, err)
		}
	}
	var out strings.Builder
	if err := ops.Encode(&out, ops.Listed(jobs.List[jobs.Record]{Total: -1}, jobs.Page{Limit: 5}, v.Job),
		""); err != nil || out.String() != `{"items":[],"total":-1,"limit":5,"offset":0}`+"\n" {
		t.Errorf("an empty list is %s (%v)", out.String(), err)
	}
	if w := v.Worker(jobs.WorkerRecord{WorkerInfo: jobs.WorkerInfo{Status: "running"}}); w.Status != "dead" ||
		w.Queues == nil || w.Running == nil {
		t.Errorf("a worker that is silent: %+v", w)
	}
}

func TestEnqueuedTimes(t *testing.T) {
	at := now.Add(time.Hour)
	if v := ops.EnqueuedView(jobs.Spec{Type: "test.plain", Delay: time.Minute}, jobs.Receipt{
		UUID: "u", Existing: true}, now); !v.RunAt.Equal(now.Add(time.Minute)) || !v.Existing {
		t.Errorf("%+v", v)
	}
	if v := ops.EnqueuedView(jobs.Spec{Type: "test.plain", RunAt: at, Delay: time.Minute}, jobs.Receipt{},
		now); !v.RunAt.Equal(at) {
		t.Errorf("%+v", v)
	}
}
