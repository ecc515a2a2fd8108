package webhooks

import (
	"embed"
	"net/http"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// DeliveryList is the answer of a list.
type DeliveryList = ops.ListView[Delivery]

//go:embed *.html *.yaml
var files embed.FS

// Feature describes the feature; a nil port is one that is not configured.
func Feature(port Port) web.Feature {
	f := web.Feature{Name: "webhooks", Path: "/admin/webhooks", Files: files,
		Chapters: map[string]string{"webhooks": "mail#webhooks"}, Routes: routes(handlers{port})}
	if port == nil {
		f.Missing = []string{"webhooks"}
	}
	return f
}

func routes(h handlers) []web.Route {
	all := []web.Route{
		{Method: http.MethodGet, Path: "/api/v1/webhooks", Name: "webhooks.list",
			Summary: "Subscriptions to events.", Scope: access.Read, Answer: WebhookList{}, Handle: h.list},
		{Method: http.MethodPost, Path: "/api/v1/webhooks", Name: "webhooks.add",
			Summary: "Subscribe an address to events. The answer alone carries the secret.", Scope: access.Admin,
			Body: Webhook{}, Answer: Webhook{}, Status: http.StatusCreated, Handle: h.add},
		{Method: http.MethodPut, Path: "/api/v1/webhooks/:id", Name: "webhooks.change",
			Summary: "Change a subscription.", Scope: access.Admin, Body: Webhook{}, Answer: Webhook{},
			Handle: h.change},
		{Method: http.MethodDelete, Path: "/api/v1/webhooks/:id", Name: "webhooks.delete",
			Summary: "End a subscription.", Scope: access.Admin, Status: http.StatusNoContent, Handle: h.remove},
		{Method: http.MethodGet, Path: "/api/v1/webhooks/:id/deliveries", Name: "webhooks.deliveries",
			Summary: "What was sent to a subscription, newest first.", Scope: access.Read, Query: web.ListQuery(),
			Answer: DeliveryList{}, Handle: h.deliveries},
		{Method: http.MethodPost, Path: "/api/v1/deliveries/:id/redeliver", Name: "webhooks.redeliver",
			Summary: "Send a delivery again, under its old id.", Scope: access.Operate,
			Answer: ops.Enqueued{}, Status: http.StatusCreated, Handle: h.redeliver},
		web.FormRoute("/admin/webhooks", "webhooks.change", "Add or switch a subscription.", access.Admin, h.save),
		web.FormRoute("/admin/webhooks/:id/delete", "webhooks.delete", "End a subscription.", access.Admin,
			h.removeByForm),
		web.FormRoute("/admin/deliveries/:id/redeliver", "webhooks.redeliver", "Send a delivery again.",
			access.Operate, h.redeliverByForm),
	}
	for i := range all {
		all[i].Needs = "webhooks"
	}
	return append(all, web.PageRoute("/admin/webhooks", "pages.webhooks", "Webhooks.", access.Read, h.page))
}
