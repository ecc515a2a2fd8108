package search

import (
	"embed"

	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

//go:embed *.html *.yaml
var files embed.FS

// Feature describes the feature.
func Feature() web.Feature {
	return web.Feature{Name: "search", Files: files,
		Chapters: map[string]string{"search": "admin#search-help-manual", "help": "admin"}, Routes: []web.Route{
			web.PageRoute("/admin/search", "pages.search", "Pages, actions and jobs that fit a text.", access.Read,
				searchPage),
			web.PageRoute("/admin/help", "pages.help", "Keys, commands and where to read on.", access.Read, helpPage),
		}}
}
