package overview

import (
	"embed"
	"net/http"

	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

//go:embed *.html *.yaml
var files embed.FS

// Texts are those of the pages in a language by key, the titles and remedies of conditions
// among them ("condition.no_worker", "condition.no_worker.fix").
func Texts(language string) (map[string]string, error) {
	catalog, err := locale.Load(files)
	if err != nil {
		return nil, err
	}
	return catalog.Pages(language), nil
}

// Feature describes the feature.
func Feature(p Ports) web.Feature {
	h := handlers{p}
	return web.Feature{Name: "overview", Path: "/admin", Group: web.Queue, Files: files,
		Chapters: map[string]string{"overview": "admin#overview"}, Warm: warm,
		Routes: []web.Route{
			web.PageRoute("/admin", "pages.overview", "Is anything working?", access.Read, h.overviewPage),
			{Method: http.MethodGet, Path: "/api/v1/series", Name: "runs.series", Summary: "Completed and failed " +
				"attempts of the last hour, day, week or month by outcome, type or queue, and percentiles of their " +
				"waits and durations.", Scope: access.Read, Query: []string{"range", "by"}, Answer: SeriesView{},
				Needs: web.NeedsHistory, Handle: h.listSeries},
		}}
}
