package health

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cmsjobs/cmsjobs/internal/answers"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// Feature describes the feature.
func Feature(p Ports) web.Feature {
	h := handlers{p}
	return web.Feature{Name: "health", Routes: h.routes(), Counts: h.counts,
		Collectors: func(c web.Config) []prometheus.Collector {
			return []prometheus.Collector{newQueueCollector(c, p.Workers), newConditionCollector(p, c.Log)}
		}}
}

// counts are the conditions that hold, on the overview and on the page of each.
func (h handlers) counts(ctx context.Context, _ web.Config, _ *answers.Cache) ([]web.Count, error) {
	const key = "nav.count.conditions"
	all := []web.Count{{Path: "/admin", Key: key, Level: "warn"}}
	for _, x := range h.Conditions(ctx) {
		if !x.Active {
			continue
		}
		all[0].N++
		path, _, _ := strings.Cut(x.Page, "?")
		if path == "" || path == "/admin" {
			continue
		}
		i := slices.IndexFunc(all, func(n web.Count) bool { return n.Path == path })
		if i < 0 {
			all, i = append(all, web.Count{Path: path, Key: key, Level: "warn"}), len(all)
		}
		all[i].N++
	}
	return all, nil
}

func (h handlers) routes() []web.Route {
	all := []web.Route{
		{Method: http.MethodGet, Path: "/healthz", Name: "health.process", Summary: "The process lives.",
			Answer: Health{}, Handle: alive},
		{Method: http.MethodGet, Path: "/livez", Name: "health.live", Summary: "The process lives.", Answer: Health{},
			Handle: alive},
		{Method: http.MethodGet, Path: "/readyz", Name: "health.ready", Summary: "The service can work: no failing " +
			"condition holds. 503 when one does. check=NAME,NAME asks for single conditions, warnings included.",
			Query: []string{"check"}, Answer: Health{}, Handle: h.ready},
		{Method: http.MethodGet, Path: "/api/v1/conditions", Name: "conditions.list",
			Summary: "Everything that is watched, whether it is wrong, since when, and how to fix it.",
			Scope:   access.Read, Answer: ConditionList{}, Handle: h.listConditions},
		{Method: http.MethodGet, Path: "/metrics", Name: "metrics", Summary: "Figures for Prometheus.",
			Scope: access.Read, Type: "text/plain", Handle: metrics},
	}
	for i := range all {
		all[i].Always = true
	}
	return all
}
