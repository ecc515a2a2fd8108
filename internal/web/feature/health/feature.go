package health

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

// Feature describes the feature.
func Feature(p Ports) web.Feature {
	h := handlers{p}
	return web.Feature{Name: "health", Routes: h.routes(), Collectors: func(c web.Config) []prometheus.Collector {
		return []prometheus.Collector{newQueueCollector(c, p.Workers), newConditionCollector(p, c.Log)}
	}}
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
