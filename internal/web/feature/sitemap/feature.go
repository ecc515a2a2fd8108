package sitemap

import (
	"embed"
	"net/http"

	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

//go:embed *.html *.yaml
var files embed.FS

// Feature describes the feature; a nil port is one that is not configured.
func Feature(port Port) web.Feature {
	h := handlers{port}
	f := web.Feature{Name: "sitemap", Path: "/admin/sitemap", Files: files,
		Chapters: map[string]string{"sitemap": "sitemap"}, Routes: routes(h), Actions: actions}
	if port == nil {
		f.Missing = []string{"sitemap"}
	}
	return f
}

func actions(req *web.Request) []web.Action {
	return []web.Action{
		web.StartAction(req.Text("action.sitemap"), "sitemap", "/admin/sitemap", "sitemap.generate", `{"force":true}`),
		web.StartAction(req.Text("sitemap.tell"), "send", "/admin/sitemap", "sitemap.indexnow", "")}
}

func routes(h handlers) []web.Route {
	return []web.Route{
		{Method: http.MethodGet, Path: "/api/v1/sitemap", Name: "sitemap.status",
			Summary: "The sitemap's files and what was submitted to IndexNow.",
			Scope:   access.Read, Answer: SitemapStatus{}, Needs: "sitemap",
			Handle: h.sitemapStatus},
		web.PageRoute("/admin/sitemap", "pages.sitemap", "Sitemap.", access.Read, h.sitemapPage),
	}
}
