package media

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
	f := web.Feature{Name: "media", Path: "/admin/media", Files: files,
		Chapters: map[string]string{"media": "admin#media-and-sitemap"}, Routes: routes(h), Warm: h.warm}
	if port == nil {
		f.Missing = []string{"media"}
	}
	return f
}

func routes(h handlers) []web.Route {
	return []web.Route{
		{Method: http.MethodGet, Path: "/api/v1/media", Name: "media.status",
			Summary: "How many pictures lack thumbnails.",
			Scope:   access.Read, Answer: MediaStatus{}, Needs: "media",
			Handle: h.mediaStatus},
		{Method: http.MethodPost, Path: "/api/v1/media/regenerate", Name: "media.regenerate",
			Summary: "Enqueue thumbnails for the pictures that lack them, or for all.",
			Scope:   access.Operate, Body: RegenerateRequest{}, Answer: web.Affected{}, Needs: "media",
			Handle: h.regenerate},
		web.PageRoute("/admin/media", "pages.media", "Media.", access.Read, h.mediaPage),
		web.FormRoute("/admin/media/regenerate", "media.regenerate", "Make thumbnails again.", access.Operate,
			h.regenerateByForm).Requires("media"),
	}
}
