package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// RunActions is what a page offers to start, and what it started. Data of pages
// embed it.
type RunActions struct {
	Tracked *ops.JobView // started here: shown until its end
	Types   []string     // of the offered ones, those that can run here
}

// Can says whether a type can be started here.
func (v RunActions) Can(jobType string) bool { return slices.Contains(v.Types, jobType) }

// runActions finds out which types a page can start, and follows the one it started.
func (s *Server) runActions(c echo.Context, jobTypes ...string) (v RunActions, live string) {
	v.Types = slices.DeleteFunc(jobTypes, func(k string) bool { return !s.known(k) })
	v.Tracked, live = s.tracked(c)
	return v, live
}

// start enqueues a job for a button of a page and goes back there, where it is
// shown until its end.
func (s *Server) start(c echo.Context) error {
	jobType, payload := c.FormValue("type"), json.RawMessage(firstOf(c.FormValue("payload"), "{}"))
	n, err := s.newJob(c, EnqueueRequest{Type: jobType, Payload: payload})
	if err != nil {
		return err
	}
	if yes, err := s.confirmed(c, n.Type, payload); !yes || err != nil {
		return err
	}
	_, answer, err := s.put(c, n)
	if err != nil {
		return err
	}
	if s.cfg.Doer != nil {
		return s.back(c, local(c.FormValue("back"), "/admin"), "start.inline")
	}
	return c.Redirect(http.StatusSeeOther, following(c.FormValue("back"), answer.ID))
}

// following is the page that a form came from, which now follows a job.
func following(back, id string) string {
	u, err := url.Parse(local(back, "/admin"))
	if err != nil {
		return "/admin/jobs/" + id
	}
	q := u.Query()
	q.Set("job", id)
	u.RawQuery = q.Encode()
	return u.RequestURI()
}

// Cleaners are the types that take something away when a button starts them.
func Cleaners() []string {
	return []string{"cache.clear", "cache.clearExpired", "logs.cleanup", "queue.clean", "maintenance.cleanup"}
}

// confirmed says whether the person said yes to a type that takes something
// away, after he was told what; other types need no yes.
func (s *Server) confirmed(c echo.Context, jobType string, payload json.RawMessage) (bool, error) {
	var p struct {
		DryRun bool `json:"dryRun"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return false, fieldError(http.StatusUnprocessableEntity, "payload", "The payload is not JSON.")
	}
	if !slices.Contains(Cleaners(), jobType) || p.DryRun || c.FormValue("sure") == "yes" {
		return true, nil
	}
	lang := s.printer(c)
	facts, whole := s.dryRunPreview(c.Request().Context(), lang, jobType, payload)
	text := lang.Text("start.ask." + jobType)
	switch {
	case !whole:
		text += " " + lang.Text("start.ask.unknown")
	case len(facts) == 0:
		text += " " + lang.Text("start.ask.nothing")
	}
	return s.sure(c, text, "", facts...)
}
