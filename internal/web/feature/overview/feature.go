package overview

import (
	"embed"

	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

//go:embed *.html *.yaml
var files embed.FS

// Feature describes the feature.
func Feature(p Ports) web.Feature {
	h := handlers{p}
	return web.Feature{Name: "overview", Path: "/admin", Group: web.Queue, Files: files, Warm: warm,
		Routes: []web.Route{web.PageRoute("/admin", "pages.overview", "Is anything working?", access.Read,
			h.overviewPage)}}
}
