package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// jobPageData is all that is known of one job.
type jobPageData struct {
	Job          ops.JobView
	Reasons      []reasonRow
	Runs         []ops.RunView
	Lines        []jobs.LogLine
	AuditEntries []AuditEntry // nil for who may not see the trail
	Copies       []copyText
	Known        bool // its type can run here
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

func (s *Server) jobPage(c echo.Context) error {
	r, err := s.job(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	v := jobPageData{Job: s.viewer(c).Job(r), Known: s.known(r.Type)}
	v.Active = r.Status == jobs.StatusQueued || r.Status == jobs.StatusProcessing
	snapshot, err := s.snapshot(c, r)
	if err != nil {
		return err
	}
	v.Reasons = ops.Each(s.viewer(c).Reasons(explain.Job(snapshot)), func(r explain.Reason) reasonRow {
		return reasonRow{s.printer(c).Sentence(r.Form, r.Args), r.Until}
	})
	if s.cfg.History != nil && r.UUID != "" {
		runs, err := s.cfg.History.Runs(ctx, jobs.Filter{UUIDs: []string{r.UUID}}, jobs.Page{Limit: pageRuns})
		if err != nil {
			return fmt.Errorf("listing runs: %w", err)
		}
		v.Runs = ops.Each(runs.Items, s.viewer(c).Run)
		if v.Lines, err = s.cfg.History.Log(ctx, r.UUID, pageLines); err != nil {
			return fmt.Errorf("reading the job's log: %w", err)
		}
		v.Lines = s.viewer(c).Lines(v.Lines)
	}
	if s.may(who(c), Route{Scope: access.Admin}) {
		auditEntries, err := s.cfg.Gate.Store.AuditEntries(ctx, access.AuditFilter{Target: ops.IDOf(r)}, jobs.Page{Limit: pageAuditEntries})
		if err != nil {
			return err
		}
		v.AuditEntries = auditEntries.Items
	}
	if v.Known && !r.Foreign {
		v.Copies = copies(c.Scheme()+"://"+c.Request().Host, v.Job)
	}
	live := ""
	if v.Active {
		live = liveJob
	}
	return s.showLive(c, "job", "job.title", live, v)
}

// copies writes a job as commands that enqueue one like it. Secrets in it are
// masked: who copies puts his own there.
func copies(base string, j ops.JobView) []copyText {
	payload := string(j.Payload)
	request, err := json.Marshal(map[string]json.RawMessage{"type": quoted(j.Type), "queue": quoted(j.Queue), "payload": j.Payload})
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
		{"curl", "curl -X POST " + shell(base+"/api/v1/jobs") + " \\\n  -H \"Authorization: Bearer $CMSJOBS_TOKEN\" \\\n  -H 'Content-Type: application/json' \\\n  -d " + shell(string(request))},
		{"SQL", "INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at)\nVALUES (" + sql(j.Queue) + ", " + sql(row) + ",\n  0, NULL, UNIX_TIMESTAMP(), UNIX_TIMESTAMP());"},
		{"PHP", "DB::table('jobs')->insert([\n    'queue' => " + php(j.Queue) + ",\n    'payload' => " + php(row) + ",\n    'attempts' => 0,\n    'reserved_at' => null,\n    'available_at' => time(),\n    'created_at' => time(),\n]);"},
	}
}

func quoted(text string) json.RawMessage {
	raw, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return raw
}

// --- Deeds on one job ---

func (s *Server) againByForm(c echo.Context) error {
	r, err := s.job(c)
	if err != nil {
		return err
	}
	id, err := s.runAgain(c, r)
	if err != nil {
		return err
	}
	return s.back(c, "/admin/jobs/"+id, "job.again.done")
}

func (s *Server) cancelByForm(c echo.Context) error {
	r, err := s.job(c)
	if err != nil {
		return err
	}
	if err := ops.Fits(ops.Cancel, r); err != nil {
		return err
	}
	key := "job.cancel.ask." + string(r.Status)
	if yes, err := s.sure(c, s.printer(c).Text(key, r.Type, ops.IDOf(r)), ""); !yes || err != nil {
		return err
	}
	if err := s.actions.One(c.Request().Context(), ops.Cancel, r); err != nil {
		return err
	}
	return s.back(c, "/admin/jobs/"+ops.IDOf(r), "job.cancel.done")
}

func (s *Server) deleteByForm(c echo.Context) error {
	r, err := s.failedOnly(c)
	if err != nil {
		return err
	}
	if yes, err := s.sure(c, s.printer(c).Text("job.delete.ask", r.Type, ops.IDOf(r)), ""); !yes || err != nil {
		return err
	}
	if err := s.actions.One(c.Request().Context(), ops.Delete, r); err != nil {
		return err
	}
	return s.back(c, "/admin/failed", "job.delete.done")
}

// --- Running again with another payload ---

type editPageData struct {
	Job     ops.JobView
	Text    string
	Problem string
}

func (s *Server) editPage(c echo.Context) error {
	r, err := s.job(c)
	if err != nil {
		return err
	}
	if !s.known(r.Type) || r.Foreign {
		return httpError(http.StatusConflict, "A job of %s cannot be enqueued here.", clip(r.Type, 80))
	}
	v := s.viewer(c).Job(r)
	return s.show(c, "edit", "edit.title", editPageData{Job: v, Text: pretty(v.Payload)})
}

func (s *Server) runEdited(c echo.Context) error {
	r, err := s.job(c)
	if err != nil {
		return err
	}
	text := c.FormValue("payload")
	envelope, _, _ := jobs.Parse(r.Payload, s.known)
	data, err := s.unmasked(c, r.Type, []byte(text), envelope.Data)
	if err == nil {
		var n jobs.Spec
		if n, err = s.newJob(c, EnqueueRequest{Type: r.Type, Queue: r.Queue, Priority: r.Priority, Payload: data}); err == nil {
			var answer ops.Enqueued
			if _, answer, err = s.put(c, n); err == nil {
				setAuditTarget(c, ops.IDOf(r), "edited, as "+answer.ID)
				return s.back(c, "/admin/jobs/"+answer.ID, "edit.done")
			}
		}
	}
	var p *Problem
	if !errors.As(err, &p) || p.Status >= http.StatusInternalServerError {
		return err
	}
	return s.write(c, p.Status, "edit", s.pageView(c, "edit", "edit.title", editPageData{s.viewer(c).Job(r), text, p.in(s.printer(c))}))
}

// unmasked puts the secrets of the original back where an edited payload still
// shows the mask. Beside a mask nothing may be changed, or a secret could be
// sent elsewhere; administrators may, who see all secrets by other ways.
func (s *Server) unmasked(c echo.Context, jobType string, edited, original []byte) (json.RawMessage, error) {
	var next, was, shown any
	if err := decodeNumbers(edited, &next); err != nil {
		return nil, fieldError(http.StatusUnprocessableEntity, "payload", "The payload is not JSON: %v.", err)
	}
	if !hasMask(next) {
		return json.Marshal(next)
	}
	view := s.viewer(c).Payload(jobType, original)
	if decodeNumbers(original, &was) != nil || decodeNumbers(view, &shown) != nil {
		was, shown = nil, nil
	}
	if sameJSON(edited, view) {
		return json.Marshal(was)
	}
	if !who(c).Scopes.Has(access.Admin) {
		return nil, fieldError(http.StatusUnprocessableEntity, "payload", "%s stands for a secret. Write the secret there, or change nothing else: only administrators may change other fields beside it.", masked)
	}
	restored, ok := restore(next, was, shown)
	if !ok {
		return nil, fieldError(http.StatusUnprocessableEntity, "payload", "%s stands where the original has no value. Write the value there.", masked)
	}
	return json.Marshal(restored)
}

// hasMask says whether the mask stands anywhere in a value.
func hasMask(value any) bool {
	switch v := value.(type) {
	case string:
		return strings.Contains(v, masked)
	case map[string]any:
		for key, inner := range v {
			if strings.Contains(key, masked) || hasMask(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasMask)
	}
	return false
}

func decodeNumbers(raw []byte, into *any) error {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("something follows the first value")
	}
	return nil
}

// restore puts values back that are as they were shown, masked.
func restore(next, was, shown any) (any, bool) {
	ok := true
	switch v := next.(type) {
	case string:
		if strings.Contains(v, masked) {
			return was, was != nil && shown == next
		}
	case map[string]any:
		old, _ := was.(map[string]any)
		seen, _ := shown.(map[string]any)
		for key, inner := range v {
			var fine bool
			v[key], fine = restore(inner, old[key], seen[key])
			ok = ok && fine
		}
	case []any:
		old, _ := was.([]any)
		seen, _ := shown.([]any)
		for i, inner := range v {
			var before, view any
			if i < len(old) && i < len(seen) {
				before, view = old[i], seen[i]
			}
			var fine bool
			v[i], fine = restore(inner, before, view)
			ok = ok && fine
		}
	}
	return next, ok
}

// tracked is a job that a page shows while it runs: its start, progress and end.
func (s *Server) tracked(c echo.Context) (*ops.JobView, string) {
	id := c.QueryParam("job")
	if id == "" || len(id) > 64 {
		return nil, ""
	}
	r, err := s.cfg.Ledger.Job(c.Request().Context(), id)
	if err != nil {
		return nil, "" // gone: the page is whole without it
	}
	v := s.viewer(c).Job(r)
	switch {
	case r.Status == jobs.StatusQueued || r.Status == jobs.StatusProcessing:
		return &v, liveJob
	case s.cfg.Now().Sub(r.EndedAt) < 3*time.Second:
		s.responses.expire() // what the page shows has changed
		return &v, liveJob   // once more after its end, as its results come to lie
	}
	return &v, ""
}
