package audit

import (
	"embed"
	"net/http"

	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

//go:embed *.html *.yaml
var files embed.FS

// Feature describes the feature.
func Feature() web.Feature {
	return web.Feature{Name: "audit", Path: "/admin/audit", Group: web.Administration, Files: files,
		Chapters: map[string]string{"audit": "admin#settings-audit-webhooks"},
		Routes: []web.Route{
			{Method: http.MethodGet, Path: "/api/v1/locks", Name: "locks.list",
				Summary: "Addresses whose sign-ins are refused for a while, because too many were wrong.",
				Scope:   access.Admin, Answer: LockList{}, Handle: listLocks},
			{Method: http.MethodDelete, Path: "/api/v1/locks/:id", Name: "locks.delete",
				Summary: "Let an address sign in again at once.",
				Scope:   access.Admin, Status: http.StatusNoContent, Handle: unlock},
			{Method: http.MethodGet, Path: "/api/v1/audit", Name: "audit.list",
				Summary: "Who did what, when and from " +
					"where; newest first.",
				Scope: access.Admin, Query: append([]string{"actor", "action", "target", "since", "until"},
					web.ListQuery()...),
				Answer: AuditEntryList{}, Handle: listAuditEntries},
			web.PageRoute("/admin/audit", "pages.audit", "Audit.", access.Admin, auditPage),
			web.FormRoute("/admin/locks/:id/delete", "locks.delete", "Let an address sign in again.", access.Admin,
				unlockByForm),
		}}
}
