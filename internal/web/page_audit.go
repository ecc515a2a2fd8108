package web

import (
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

type auditPageData struct {
	Actor, Action, Target, Since string
	AuditEntries                 []AuditEntry
	Locks                        []Lock // on the first page
	Actions                      []string
	Next                         string
	Cursor                       bool
	Problem                      string
}

func (s *Server) auditPage(c echo.Context) error {
	q := c.QueryParams()
	v := auditPageData{Actor: clip(q.Get("actor"), 191), Action: clip(q.Get("action"), 191), Target: clip(q.Get("target"), 191), Since: q.Get("since"), Actions: s.auditActions(), Cursor: q.Get("cursor") != ""}
	since, err := ops.ParseTime(v.Since, "since", s.cfg.Now())
	if err != nil {
		v.Problem, since = s.problemOf(err).in(s.printer(c)), time.Time{}
	}
	f := access.AuditFilter{Actor: v.Actor, Action: v.Action, Target: v.Target, Since: since}
	list, err := s.cfg.Gate.Store.AuditEntries(c.Request().Context(), f, jobs.Page{Limit: PageRows, Cursor: clip(q.Get("cursor"), 40)})
	if err != nil {
		return err
	}
	v.AuditEntries = list.Items
	if !v.Cursor {
		if v.Locks, err = s.cfg.Gate.Store.Locks(c.Request().Context()); err != nil {
			return err
		}
	}
	v.Next = NextPage("/admin/audit", url.Values{"actor": {v.Actor}, "action": {v.Action}, "target": {v.Target}, "since": {v.Since}}, list.Next)
	return s.show(c, "audit", "audit.title", v)
}

// auditActions are the names that the trail knows.
func (s *Server) auditActions() []string {
	seen := map[string]bool{"backups.download": true, "failed.export": true, "job_enqueued": true, "job_failed": true}
	for _, r := range s.routes {
		if r.changes() {
			seen[r.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
