package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/labstack/echo/v4"
)

// started is what a page offers to start, and what it started.
type started struct {
	Tracked *JobView // started here: shown until its end
	Kinds   []string // of the offered ones, those that can run here
}

// Can says whether a kind can be started here.
func (v started) Can(kind string) bool { return slices.Contains(v.Kinds, kind) }

// offer finds out which kinds a page can start, and follows the one it started.
func (s *Server) offer(c echo.Context, kinds ...string) (v started, live string) {
	v.Kinds = slices.DeleteFunc(kinds, func(k string) bool { return !s.known(k) })
	v.Tracked, live = s.tracked(c)
	return v, live
}

// start enqueues a job for a button of a page and goes back there, where it is
// shown until its end.
func (s *Server) start(c echo.Context) error {
	kind, payload := c.FormValue("kind"), json.RawMessage(firstOf(c.FormValue("payload"), "{}"))
	n, err := s.newJob(c, EnqueueRequest{Type: kind, Payload: payload})
	if err != nil {
		return err
	}
	if text, ask, err := s.consequence(c, n.Kind, payload); err != nil {
		return err
	} else if ask {
		if yes, err := s.sure(c, text, ""); !yes || err != nil {
			return err
		}
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

// consequence says what a kind will do, where it takes something away.
func (s *Server) consequence(c echo.Context, kind string, payload json.RawMessage) (text string, ask bool, err error) {
	var p struct {
		DryRun   bool `json:"dryRun"`
		ClearAll bool `json:"clearAll"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return "", false, badField(http.StatusUnprocessableEntity, "payload", "The payload is not JSON.")
	}
	part := map[string]string{"cache.clear": "cache", "logs.cleanup": "logs"}[kind]
	if part == "" || p.DryRun {
		return "", false, nil
	}
	var bytes, files int64
	if s.cfg.Growth != nil {
		rooms, err := s.cfg.Growth.Growth(c.Request().Context())
		if err != nil {
			return "", false, fmt.Errorf("measuring sizes: %w", err)
		}
		for _, r := range rooms {
			if r.Part == part {
				bytes, files = bytes+r.Bytes, files+r.Rows
			}
		}
	}
	return say(language(c), "start.ask."+kind, size(bytes), grouped(files)), true, nil
}
