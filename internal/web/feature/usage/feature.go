package usage

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
	f := web.Feature{Name: "usage", Path: "/admin/usage", Files: files,
		Chapters: map[string]string{"usage": "admin#cache-and-logs"}, Routes: routes(h), Overview: h.overview,
		Warm: h.warm, Actions: actions}
	if port == nil {
		f.Missing = []string{"report of sizes"}
	}
	return f
}

func actions(req *web.Request) []web.Action {
	return []web.Action{web.StartAction(req.Text("usage.cache.clear"), "bolt", "/admin/usage", "cache.clear", "")}
}

func routes(h handlers) []web.Route {
	return []web.Route{
		{Method: http.MethodGet, Path: "/api/v1/usage", Name: "usage.list",
			Summary: "What takes space on disk and in the database.",
			Scope:   access.Read, Answer: UsageList{}, Needs: "report of sizes",
			Handle: h.usage},
		web.PageRoute("/admin/usage", "pages.usage", "Cache, logs, sizes.", access.Read, h.usagePage),
	}
}
