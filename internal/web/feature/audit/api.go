package audit

import (
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// AuditEntry is shown as access keeps it.
type AuditEntry = access.AuditEntry

// AuditEntryList is the answer of a list.
type AuditEntryList = ops.ListView[AuditEntry]

func listAuditEntries(req *web.Request) error {
	f := access.AuditFilter{Actor: redact.Clip(req.QueryParam("actor"), 191),
		Action: redact.Clip(req.QueryParam("action"), 191), Target: redact.Clip(req.QueryParam("target"), 191)}
	var err error
	if f.Since, err = ops.ParseTime(req.QueryParam("since"), "since", req.Now()); err != nil {
		return err
	}
	if f.Until, err = ops.ParseTime(req.QueryParam("until"), "until", req.Now()); err != nil {
		return err
	}
	return web.AnswerList(req, "the audit log", func(e AuditEntry) AuditEntry { return e },
		func(p jobs.Page) (jobs.List[AuditEntry], error) {
			return req.Gate().Store.AuditEntries(req.Ctx(), f, p)
		})
}
