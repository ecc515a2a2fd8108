package analytics

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
	f := web.Feature{Name: "analytics", Path: "/admin/analytics", Files: files,
		Chapters: map[string]string{"analytics": "analytics#figures"}, Routes: routes(h)}
	if port == nil {
		f.Missing = []string{"analytics"}
	}
	return f
}

func routes(h handlers) []web.Route {
	return []web.Route{
		{Method: http.MethodGet, Path: "/api/v1/analytics", Name: "analytics.report",
			Summary: "Views and visitors by day and dimension.",
			Scope:   access.Read, Query: []string{"since", "until", "site", "limit", "filter"},
			Answer: AnalyticsReport{},
			Needs:  "analytics",
			Handle: h.analytics},
		web.PageRoute("/admin/analytics", "pages.analytics", "Analytics.", access.Read, h.analyticsPage),
		web.PageRoute("/admin/analytics/export", "pages.analyticsExport", "Analytics for a spreadsheet.", access.Read,
			h.exportAnalytics).Requires("analytics"),
	}
}
