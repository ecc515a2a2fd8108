package audit

import (
	"net/url"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
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

func auditPage(req *web.Request) error {
	q := req.QueryParams()
	v := auditPageData{Actor: redact.Clip(q.Get("actor"), 191), Action: redact.Clip(q.Get("action"), 191),
		Target: redact.Clip(q.Get("target"), 191), Since: q.Get("since"), Actions: req.AuditedActions(),
		Cursor: q.Get("cursor") != ""}
	since, err := ops.ParseTime(v.Since, "since", req.Now())
	if err != nil {
		_, v.Problem, _ = req.Refusal(err)
		since = time.Time{}
	}
	f := access.AuditFilter{Actor: v.Actor, Action: v.Action, Target: v.Target, Since: since}
	list, err := req.Gate().Store.AuditEntries(req.Ctx(), f,
		jobs.Page{Limit: web.PageRows, Cursor: redact.Clip(q.Get("cursor"), 40)})
	if err != nil {
		return err
	}
	v.AuditEntries = list.Items
	if !v.Cursor {
		if v.Locks, err = req.Gate().Store.Locks(req.Ctx()); err != nil {
			return err
		}
	}
	v.Next = web.NextPage("/admin/audit", url.Values{"actor": {v.Actor}, "action": {v.Action}, "target": {v.Target},
		"since": {v.Since}}, list.Next)
	return req.Show(web.PageView{Name: "audit", Data: v, Ready: true})
}
