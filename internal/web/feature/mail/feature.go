package mail

import (
	"embed"
	"net/http"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

//go:embed *.html *.yaml
var files embed.FS

// What the routes need, by the name that people read where it is missing.
const (
	needLog          = "mail log"
	needSuppressions = "suppression list"
	needTemplates    = "mail templates"
)

// Feature describes the feature.
func Feature(p Ports) web.Feature {
	f := web.Feature{Name: "mail", Path: "/admin/mail", Files: files,
		Chapters: map[string]string{
			"mail": "mail#how-mail-is-sent", "letter": "mail#who-received-it",
			"templates": "mail#templates"},
		Routes: routes(handlers{p.Log, p.Templates, p.Suppressions})}
	for need, missing := range map[string]bool{needLog: p.Log == nil, needTemplates: p.Templates == nil,
		needSuppressions: p.Suppressions == nil} {
		if missing {
			f.Missing = append(f.Missing, need)
		}
	}
	return f
}

func routes(h handlers) []web.Route {
	return []web.Route{
		{Method: http.MethodGet, Path: "/api/v1/mail", Name: "mail.list",
			Summary: "Mail that was sent or not, newest first.",
			Scope:   access.Read, Query: append([]string{"status", "text"}, web.ListQuery()...), Answer: MailList{},
			Needs:  needLog,
			Handle: h.listMail},
		{Method: http.MethodGet, Path: "/api/v1/mail/:id", Name: "mail.show",
			Summary: "One mail, with its body where bodies are kept.",
			Scope:   access.Operate, Answer: Mail{}, Needs: needLog,
			Handle: h.showMail},
		{Method: http.MethodPost, Path: "/api/v1/mail/:id/resend", Name: "mail.resend",
			Summary: "Send a mail again.",
			Scope:   access.Operate, Answer: ops.Enqueued{}, Status: http.StatusCreated, Needs: needLog,
			Handle: h.resendMail},
		{Method: http.MethodGet, Path: "/api/v1/suppressions", Name: "suppressions.list",
			Summary: "Addresses that get no mail.",
			Scope:   access.Read, Query: web.ListQuery(), Answer: SuppressionList{}, Needs: needSuppressions,
			Handle: h.listSuppressions},
		{Method: http.MethodPost, Path: "/api/v1/suppressions", Name: "suppressions.add",
			Summary: "Send an address no more mail.",
			Scope:   access.Operate, Body: Suppression{}, Status: http.StatusNoContent, Needs: needSuppressions,
			Handle: h.suppress},
		{Method: http.MethodDelete, Path: "/api/v1/suppressions/:address", Name: "suppressions.remove",
			Summary: "Send an address mail again.",
			Scope:   access.Operate, Status: http.StatusNoContent, Needs: needSuppressions,
			Handle: h.unsuppress},
		web.PageRoute("/admin/mail", "pages.mail", "Mail.", access.Read, h.mailPage),
		web.PageRoute("/admin/mail/templates", "pages.templates", "Mail templates, filled in with sample data.",
			access.Read, h.templatesPage),
		web.PageRoute("/admin/mail/templates/body", "pages.templateBody", "A template's HTML.", access.Read,
			h.templateBody).Requires(needTemplates),
		web.PageRoute("/admin/mail/:id", "pages.letter", "One mail.", access.Operate, h.mailShowPage).Requires(needLog),
		web.PageRoute("/admin/mail/:id/preview", "pages.preview", "A mail's body.", access.Operate,
			h.preview).Requires(needLog),
		web.FormRoute("/admin/mail/:id/resend", "mail.resend", "Send a mail again.", access.Operate,
			h.resendByForm).Requires(needLog),
		web.FormRoute("/admin/suppressions", "suppressions.add", "Send an address no more mail.", access.Operate,
			h.suppressByForm).Requires(needSuppressions),
		web.FormRoute("/admin/suppressions/remove", "suppressions.remove", "Send an address mail again.",
			access.Operate, h.unsuppressByForm).Requires(needSuppressions),
	}
}
