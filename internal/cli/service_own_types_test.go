package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/worker"
)

// resizer is a worker written in JavaScript. It says "ready" when it works.
const resizer = `import { JobsWorker, PermanentError } from %q;
const worker = new JobsWorker({ baseUrl: process.env.CMSJOBS_URL, token: process.env.CMSJOBS_TOKEN,
  name: "shop@test", slots: 2, lease: 5, onError: (e) => console.error(e) });
worker.handle({
  type: "shop.resize", title: "Resizes a picture", max_attempts: 2, backoff: [0],
  schema: { type: "object", additionalProperties: false, required: ["width"], properties: {
    width: { type: "integer", minimum: 1, description: "of the new picture" },
    mode: { type: "string", enum: ["cut", "fit"], default: "fit" } } },
}, async (job) => {
  job.progress(1, 2, "half");
  job.log("resizing to " + job.payload.width);
  if (job.payload.width === 13) throw new PermanentError("13 is refused");
  if (job.payload.width === 99 && job.attempt === 1) await new Promise(() => setInterval(() => {}, 1000));
  if (job.payload.width === 77) await new Promise((_, no) =>
    job.signal.addEventListener("abort", () => no(new Error("stopped")), { once: true }));
  return { bytes: job.payload.width * 10 };
});
const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());
process.on("warning", (w) => { throw w; }); // listeners that are never taken off, above all
await worker.run(stop.signal);
`

// ownTypes is a running service and what asks it.
type ownTypes struct {
	*service
	admin string
	node  []string // starts the worker in JavaScript
}

func (o ownTypes) startNode() *exec.Cmd {
	o.t.Helper()
	c := exec.Command(o.node[0], o.node[1:]...)
	c.Env = append(os.Environ(), "CMSJOBS_URL="+o.url, "CMSJOBS_TOKEN="+o.token("work"))
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	return c
}

// seen is what the API shows of a job.
type seen struct {
	ID, Status, Error string
	Attempts          int
	Result            struct{ Bytes int }
	Progress          struct{ Done, Total int }
}

// await polls a job until ok.
func (o ownTypes) await(what, id string, ok func(seen) bool) seen {
	o.t.Helper()
	var job seen
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		job = seen{}
		o.ask(200, "GET", "/api/v1/jobs/"+id, "", bearer(o.admin), &job)
		if ok(job) {
			return job
		}
	}
	o.t.Fatalf("%s: the job is %+v\n%s", what, job, o.log())
	return job
}

func (o ownTypes) enqueue(jobType, payload string) string {
	o.t.Helper()
	var made struct{ ID string }
	o.ask(201, "POST", "/api/v1/jobs", fmt.Sprintf(`{"type":%q,"payload":%s}`, jobType, payload), bearer(o.admin),
		&made)
	return made.ID
}

// form sends the page's form of a type and returns the job that it made.
func (o ownTypes) form(jobType string, fields url.Values) string {
	o.t.Helper()
	fields.Set("type", jobType)
	r, err := http.NewRequestWithContext(o.t.Context(), "POST", o.url+"/admin/enqueue",
		strings.NewReader(fields.Encode()))
	if err != nil {
		o.t.Fatal(err)
	}
	r.Header = bearer(o.admin)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	defer answer.Body.Close()
	id, there := strings.CutPrefix(answer.Header.Get("Location"), "/admin/jobs/")
	if answer.StatusCode != http.StatusSeeOther || !there {
		o.t.Fatalf("the form is answered with %d, to %q", answer.StatusCode, answer.Header.Get("Location"))
	}
	id, _, _ = strings.Cut(id, "?")
	return id
}

// known waits until the page's form of a type is there, and returns it.
func (o ownTypes) known(jobType string) string {
	o.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if status, page := o.try("GET", "/admin/enqueue?type="+jobType, "", bearer(o.admin)); status == 200 {
			return string(page)
		}
	}
	o.t.Fatalf("the page does not know %s\n%s", jobType, o.log())
	return ""
}

// TestTypesOfOtherPrograms registers a type from JavaScript and one from Go, and
// uses them by the page's form, HTTP and the command line: they run, show progress,
// fail, are retried, cancelled, and lose nothing when their worker is killed.
func TestTypesOfOtherPrograms(t *testing.T) {
	t.Parallel()
	dir := javaScriptSDK(t)
	db := jobstest.Open(t, jobstest.MySQL)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	s := startService(t, "schedule: {enabled: false}\nqueue: {worker: false}\n", "--dsn="+db.DSN)
	script := filepath.Join(t.TempDir(), "worker.mjs")
	program := fmt.Sprintf(resizer, "file://"+filepath.Join(dir, "dist", "index.js"))
	if err := os.WriteFile(script, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	o := ownTypes{s, s.token("admin"), []string{"node", script}}
	o.ask(422, "POST", "/api/v1/jobs", `{"type":"shop.resize","payload":{"width":1}}`, bearer(o.admin), nil)
	node := o.startNode()

	page := o.known("shop.resize")
	for _, piece := range []string{"Resizes a picture", `name="p.width"`, "of the new picture",
		"<option>cut</option>"} {
		if !strings.Contains(page, piece) {
			t.Errorf("the form lacks %q:\n%s", piece, page)
		}
	}
	done := func(j seen) bool { return j.Status == "completed" }
	failed := func(j seen) bool { return j.Status == "failed" }
	id := o.form("shop.resize", url.Values{"p.width": {"300"}, "p.mode": {"cut"}})
	if job := o.await("from the form", id, done); job.Result.Bytes != 3000 || job.Attempts != 1 {
		t.Errorf("it ended as %+v", job)
	}
	_, text := o.try("GET", "/api/v1/jobs/"+id+"/log", "", bearer(o.admin))
	if !strings.Contains(string(text), "resizing to 300") {
		t.Errorf("its log is %s", text)
	}

	o.refusesWrongPayloads()
	o.failsAndIsRetried(failed)
	o.isCancelled()
	o.survivesItsWorker(node, done)
	o.runsGo(db, done)
}

func (o ownTypes) refusesWrongPayloads() {
	o.t.Helper()
	for payload, piece := range map[string]string{`{"widht":3}`: `did you mean \"width\"`, `{"width":0}`: "minimum",
		`{}`: "width", `{"width":3,"mode":"x"}`: "mode"} {
		status, text := o.try("POST", "/api/v1/jobs", fmt.Sprintf(`{"type":"shop.resize","payload":%s}`, payload),
			bearer(o.admin))
		if status != 422 || !strings.Contains(string(text), piece) {
			o.t.Errorf("%s is answered with %d: %s", payload, status, text)
		}
	}
	out := o.command("types", "show", "shop.resize")
	if !strings.Contains(out, "Resizes a picture") || !strings.Contains(out, "of the new picture") {
		o.t.Errorf("types show says\n%s", out)
	}
	out = o.command("--json", "enqueue", "shop.resize", `{"width":5}`)
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		o.t.Fatal(err)
	}
	o.await("from the command line", made.ID, func(j seen) bool { return j.Status == "completed" })
}

func (o ownTypes) failsAndIsRetried(failed func(seen) bool) {
	o.t.Helper()
	id := o.enqueue("shop.resize", `{"width":13}`)
	if job := o.await("permanent failure", id, failed); !strings.Contains(job.Error, "13 is refused") ||
		job.Attempts != 1 {
		o.t.Errorf("it failed as %+v", job)
	}
	o.ask(200, "POST", "/api/v1/jobs/"+id+"/requeue", "", bearer(o.admin), nil)
	o.await("retried", id, failed)
	var runs struct{ Items []struct{ Outcome string } }
	o.ask(200, "GET", "/api/v1/jobs/"+id+"/runs", "", bearer(o.admin), &runs)
	if len(runs.Items) != 2 {
		o.t.Errorf("its history is %+v", runs)
	}
}

func (o ownTypes) isCancelled() {
	o.t.Helper()
	id := o.enqueue("shop.resize", `{"width":77}`)
	o.await("progress", id, func(j seen) bool { return j.Status == "processing" && j.Progress.Total == 2 })
	o.ask(200, "POST", "/api/v1/jobs/"+id+"/cancel", "", bearer(o.admin), nil)
	o.await("cancelled", id, func(j seen) bool { return j.Status == "cancelled" })
}

// survivesItsWorker kills the worker in the middle of a job.
func (o ownTypes) survivesItsWorker(node *exec.Cmd, done func(seen) bool) {
	o.t.Helper()
	id := o.enqueue("shop.resize", `{"width":99}`)
	o.await("it runs", id, func(j seen) bool { return j.Status == "processing" })
	if err := node.Process.Kill(); err != nil {
		o.t.Fatal(err)
	}
	node.Wait()
	o.await("its worker is silent", id, func(j seen) bool { return j.Status == "queued" })
	late := o.enqueue("shop.resize", `{"width":2}`) // accepted, and waits
	var why struct{ Reasons []struct{ Code string } }
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		o.ask(200, "GET", "/api/v1/jobs/"+late+"/explain", "", bearer(o.admin), &why)
		if len(why.Reasons) > 0 && why.Reasons[0].Code == "no_worker_for_type" {
			break
		}
		if time.Now().After(deadline) {
			o.t.Fatalf("it waits because of %+v\n%s", why, o.log())
		}
	}
	o.startNode()
	if job := o.await("the second worker", id, done); job.Attempts != 2 || job.Result.Bytes != 990 {
		o.t.Errorf("it ended as %+v", job)
	}
	o.await("what waited", late, done)
}

// runsGo runs a type of a program in Go beside.
func (o ownTypes) runsGo(db *jobstest.Database, done func(seen) bool) {
	o.t.Helper()
	type invoice struct {
		Number int `json:"number" required:"true"`
	}
	w, err := worker.New(o.t.Context(), db.DB.DB, db.Driver, worker.Options{Queue: "default", Slots: 2})
	if err != nil {
		o.t.Fatal(err)
	}
	worker.Handle(w, worker.Type{Name: "shop.invoice", Title: "Makes an invoice", MaxAttempts: 2,
		Backoff: []time.Duration{time.Second}}, func(ctx context.Context, job worker.Job, p invoice) error {
		worker.Progress(ctx, 1, 1, "")
		if job.Attempt == 1 {
			return errors.New("the printer is out of paper")
		}
		return worker.SetResult(ctx, map[string]int{"bytes": p.Number})
	})
	if err := w.Start(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
	o.known("shop.invoice")
	id := o.form("shop.invoice", url.Values{"p.number": {"42"}})
	if job := o.await("in Go", id, done); job.Attempts != 2 || job.Result.Bytes != 42 {
		o.t.Errorf("it ended as %+v", job)
	}
	o.ask(422, "POST", "/api/v1/jobs", `{"type":"shop.invoice","payload":{"nummer":1}}`, bearer(o.admin), nil)
	if err := w.Stop(context.WithoutCancel(o.t.Context())); err != nil {
		o.t.Error(err)
	}
}
