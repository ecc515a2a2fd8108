package jobs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/summary"
)

// jobPageData is all that is known of one job.
type jobPageData struct {
	Job          ops.JobView
	Result       summary.View
	Reasons      []reasonRow
	Runs         []ops.RunView
	Lines        []jobs.LogLine
	AuditEntries []access.AuditEntry // nil for who may not see the audit log
	Attempts     []attemptRow        // oldest first
	Chart        template.HTML
	Edit         *payloadEdit
	Equal        []ops.JobView
	RunMS        int64 // of all attempts
	Copies       []copyText
	Known        bool // its type can run here
	Editable     bool // the caller may make another one with another payload
	Active       bool // it waits or runs
}

// reasonRow is a reason in the person's language.
type reasonRow struct {
	Text  string
	Until time.Time
}

// copyText is the job in the words of another tool.
type copyText struct{ Name, Text string }

// pageRuns and pageLines bound what one job's page shows.
const (
	pageRuns         = 50
	pageLines        = 500
	pageAuditEntries = 50
)

func (h handlers) jobPage(req *web.Request) error {
	r, err := h.job(req)
	if err != nil {
		return err
	}
	ctx := req.Ctx()
	v := jobPageData{Job: req.View().Job(r), Known: req.Known(r.Type), Editable: mayEdit(req, r) == nil}
	v.Result = summary.Of(req.Printer(), req.Registry(), v.Job.Type, v.Job.Result)
	v.Active = r.Status == jobs.StatusQueued || r.Status == jobs.StatusProcessing
	snapshot, err := h.snapshot(req, r)
	if err != nil {
		return err
	}
	v.Reasons = ops.Each(req.View().Reasons(explain.Job(snapshot)), func(r explain.Reason) reasonRow {
		return reasonRow{req.Printer().Sentence(r.Form, r.Args), r.Until}
	})
	if history := req.History(); history != nil && r.UUID != "" {
		runs, err := history.Runs(ctx, jobs.Filter{UUIDs: []string{r.UUID}}, jobs.Page{Limit: pageRuns})
		if err != nil {
			return fmt.Errorf("listing runs: %w", err)
		}
		v.Runs = ops.Each(runs.Items, req.View().Run)
		if v.Lines, err = history.Log(ctx, r.UUID, pageLines); err != nil {
			return fmt.Errorf("reading the job's log: %w", err)
		}
		v.Lines = req.View().Lines(v.Lines)
	}
	v.Attempts = attempts(req.Printer(), v.Job, v.Runs, req.Now())
	v.Chart = attemptsChart(req.Printer(), v.Attempts)
	for _, run := range v.Runs {
		v.RunMS += run.DurationMS
	}
	v.Edit = h.edit(req, r, v.Job)
	if v.Equal, err = h.equalBefore(req, r); err != nil {
		return err
	}
	if req.May(access.Admin) {
		auditEntries, err := req.Gate().Store.AuditEntries(ctx, access.AuditFilter{Target: ops.IDOf(r)},
			jobs.Page{Limit: pageAuditEntries})
		if err != nil {
			return err
		}
		v.AuditEntries = auditEntries.Items
	}
	if v.Known {
		v.Copies = copies(req.Scheme()+"://"+req.Request().Host+req.Base(), v.Job)
	}
	live := ""
	if v.Active {
		live = web.LiveJob
	}
	return req.Show(web.PageView{Name: "job", Live: live, Data: v, Ready: true})
}

// copies writes a job as commands that enqueue one like it. Secrets in it are
// masked: the reader puts their own there. There are none of PHP's jobs, and of those
// whose payload is not kept.
func copies(base string, j ops.JobView) []copyText {
	if j.Foreign || j.PayloadOmitted {
		return nil
	}
	payload := string(j.Payload)
	request, err := json.Marshal(map[string]json.RawMessage{"type": quoted(j.Type), "queue": quoted(j.Queue),
		"payload": j.Payload})
	if err != nil {
		return nil
	}
	row := fmt.Sprintf(`{"type":%s,"data":%s}`, quoted(j.Type), payload)
	shell := func(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
	sql := func(text string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + "'"
	}
	php := func(text string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
	}
	return []copyText{
		{"curl", "curl -X POST " + shell(base+"/api/v1/jobs") + " \\\n  -H \"Authorization: Bearer $CMSJOBS_TOKEN\" " +
			"\\\n  -H 'Content-Type: application/json' \\\n  -d " + shell(string(request))},
		{"SQL", "INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at)\nVALUES (" +
			sql(j.Queue) + ", " + sql(row) + ",\n  0, NULL, UNIX_TIMESTAMP(), UNIX_TIMESTAMP());"},
		{"PHP", "DB::table('jobs')->insert([\n    'queue' => " + php(j.Queue) + ",\n    'payload' => " + php(row) +
			",\n    'attempts' => 0,\n    'reserved_at' => null,\n    'available_at' => time(),\n    'created_at' => " +
			"time(),\n]);"},
	}
}

func quoted(text string) json.RawMessage {
	raw, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return raw
}

// --- Actions on one job ---

func (h handlers) againByForm(req *web.Request) error {
	r, err := h.job(req)
	if err != nil {
		return err
	}
	id, err := h.runAgain(req, r)
	if err != nil {
		return err
	}
	return req.Back("/admin/jobs/"+id, "job.again.done")
}

// cancelByForm cancels a job. One that waits and that the caller may put back goes
// without a question, and comes back by a press; another is lost, and they are asked.
func (h handlers) cancelByForm(req *web.Request) error {
	r, err := h.job(req)
	if err != nil {
		return err
	}
	if err := ops.Fits(ops.Cancel, r); err != nil {
		return err
	}
	back := r.Status == jobs.StatusQueued && h.Restorable != nil && h.Restorable(r) && req.MayRunAgain(r) == nil
	if !back {
		key := "job.cancel.ask." + string(r.Status)
		if yes, err := req.Sure(req.Printer().Text(key, r.Type, ops.IDOf(r)), ""); !yes || err != nil {
			return err
		}
	}
	if err := h.actions(req).One(req.Ctx(), ops.Cancel, r); err != nil {
		return err
	}
	if !back {
		return req.Back("/admin/jobs/"+ops.IDOf(r), "job.cancel.done")
	}
	return req.BackUndoable(req.BackTo("/admin/jobs/"+ops.IDOf(r)), web.Undo{Path: "/admin/jobs/" + ops.IDOf(r) +
		"/restore", Fields: [][2]string{{"priority", strconv.Itoa(r.Priority)}}}, "job.cancel.undoable", r.Type)
}

// restoreByForm puts a job that was cancelled while it waited back into its queue, due
// when it was. Pressed twice it makes one job: its id comes from the old one's.
func (h handlers) restoreByForm(req *web.Request) error {
	r, err := h.job(req)
	if err != nil {
		return err
	}
	if r.Status != jobs.StatusCancelled {
		return web.Refuse(http.StatusConflict, "The job is not cancelled: there is nothing to undo.")
	}
	if err := req.MayRunAgain(r); err != nil {
		return err
	}
	envelope, origin, err := jobs.Parse(r.Payload, req.Known)
	if origin != jobs.Ours {
		return web.Refuse(http.StatusConflict, "The job cannot run again, its payload is not kept or no "+
			"longer fits: %s", web.Spoken{Err: err})
	}
	priority, err := strconv.Atoi(cmp.Or(req.FormValue("priority"), "0"))
	if err != nil || priority < math.MinInt16 || priority > math.MaxInt16 {
		return web.RefuseField(http.StatusUnprocessableEntity, "priority", "The form cannot be read.")
	}
	n := jobs.Spec{Type: envelope.Type, Queue: r.Queue, Data: envelope.Data, Metadata: envelope.Metadata,
		Priority: priority, UUID: uuid.NewSHA1(uuid.NameSpaceURL, []byte("cmsjobs:restored:"+r.UUID)).String()}
	if r.RunAt.After(req.Now()) {
		n = n.At(r.RunAt)
	}
	receipts, err := req.Enqueuer().Enqueue(req.Ctx(), n)
	if err != nil {
		return fmt.Errorf("enqueuing the cancelled job again: %w", err)
	}
	req.Audit(ops.IDOf(r), "restored as "+receipts[0].UUID)
	return req.Back("/admin/jobs/"+receipts[0].UUID, "job.restored")
}

func (h handlers) deleteByForm(req *web.Request) error {
	r, err := h.failedOnly(req)
	if err != nil {
		return err
	}
	if yes, err := req.Sure(req.Printer().Text("job.delete.ask", r.Type, ops.IDOf(r)), ""); !yes || err != nil {
		return err
	}
	if err := h.actions(req).One(req.Ctx(), ops.Delete, r); err != nil {
		return err
	}
	return req.Back("/admin/failed", "job.delete.done")
}

// --- Running again with another payload ---

type editPageData struct {
	Job     ops.JobView
	Text    string
	Problem string
}

func (h handlers) editPage(req *web.Request) error {
	r, err := h.job(req)
	if err != nil {
		return err
	}
	if err := mayEdit(req, r); err != nil {
		return err
	}
	v := req.View().Job(r)
	return req.Show(web.PageView{Name: "edit", Data: editPageData{Job: v, Text: web.Pretty(v.Payload)}, Ready: true})
}

// mayEdit refuses a job of a type that the caller may not enqueue, whatever its payload:
// the service alone makes some.
func mayEdit(req *web.Request, r jobs.Record) error {
	if !req.Known(r.Type) || r.Foreign {
		return web.Refuse(http.StatusConflict, "A job of %s cannot be enqueued here.", redact.Clip(r.Type, 80))
	}
	if err := ops.PayloadKept(r); err != nil {
		return err
	}
	err := req.MayEnqueue(r.Type, json.RawMessage("{}"))
	if p := (*web.Problem)(nil); errors.As(err, &p) && p.Status == http.StatusForbidden {
		return err
	}
	return nil
}

func (h handlers) runEdited(req *web.Request) error {
	r, err := h.job(req)
	if err != nil {
		return err
	}
	text := req.FormValue("payload")
	envelope, _, _ := jobs.Parse(r.Payload, req.Known)
	data, err := req.Unmask(r.Type, []byte(text), envelope.Data)
	if err == nil {
		var n jobs.Spec
		if n, err = h.newJob(req, EnqueueRequest{Type: r.Type, Queue: r.Queue, Priority: r.Priority,
			Payload: data, Metadata: madeFrom(r)}); err == nil {
			var answer ops.Enqueued
			if _, answer, err = h.put(req, n); err == nil {
				req.Audit(ops.IDOf(r), "edited, as "+answer.ID)
				return req.Back("/admin/jobs/"+answer.ID, "edit.done")
			}
		}
	}
	status, problem, ours := req.Refusal(err)
	if ours {
		return err
	}
	return req.Show(web.PageView{Name: "edit", Data: editPageData{req.View().Job(r), text, problem}, Ready: true,
		Status: status})
}

// madeFrom is the metadata of a job with another one's payload, edited.
func madeFrom(r jobs.Record) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{%q:%s}`, editedFrom, quoted(ops.IDOf(r))))
}
