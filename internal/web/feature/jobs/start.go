package jobs

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/web"
)

// start enqueues a job for a button of a page and goes back there, where it is
// shown until its end; a page that stays as it is shows a link to it.
func (h handlers) start(req *web.Request) error {
	jobType, payload := req.FormValue("type"), json.RawMessage(cmp.Or(req.FormValue("payload"), "{}"))
	n, err := h.newJob(req, EnqueueRequest{Type: jobType, Payload: payload})
	if err != nil {
		return err
	}
	if yes, err := confirmed(req, n.Type, payload); !yes || err != nil {
		return err
	}
	_, answer, err := h.put(req, n)
	if err != nil {
		return err
	}
	if h.Inline != nil {
		return req.Back(req.BackTo("/admin"), "start.inline")
	}
	if req.FormValue("stay") == "yes" {
		return req.BackShowing(req.BackTo("/admin"), "/admin/jobs/"+answer.ID, "start.done", n.Type)
	}
	return req.Redirect(http.StatusSeeOther, web.Following(req.FormValue("back"), answer.ID))
}

// confirmed says whether the person said yes to a type that takes something
// away, after they saw what; other types need no yes.
func confirmed(req *web.Request, jobType string, payload json.RawMessage) (bool, error) {
	var p struct {
		DryRun bool `json:"dryRun"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return false, web.RefuseField(http.StatusUnprocessableEntity, "payload", "The payload is not JSON.")
	}
	if !slices.Contains(web.Cleaners(), jobType) || p.DryRun || req.FormValue("sure") == "yes" {
		return true, nil
	}
	lang := req.Printer()
	plan, whole := dryRunPreview(req, jobType, payload)
	text := lang.Text("start.ask." + jobType)
	switch {
	case !whole:
		text += " " + lang.Text("start.ask.unknown")
	case len(plan) == 0:
		text += " " + lang.Text("start.ask.nothing")
	}
	return req.SureOfPlan(text, "", plan)
}
