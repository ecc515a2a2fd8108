package settings

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
	return web.Feature{Name: "settings", Path: "/admin/settings", Group: web.Administration, Files: files,
		Chapters: map[string]string{"settings": "settings"},
		Routes: []web.Route{
			{Method: http.MethodGet, Path: "/api/v1/settings", Name: "settings.list",
				Summary: "The configuration and where each value came from.",
				Scope:   access.Admin, Answer: SettingList{}, Needs: web.NeedsSettings, Handle: listSettings},
			web.PageRoute("/admin/settings", "pages.settings", "Settings.", access.Admin, settingsPage),
		}}
}
