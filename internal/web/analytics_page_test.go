package web_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web/feature"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/analytics"
)

// visits has figures of which every filter selects a quarter.
type visits struct {
	plenty
	asked *analytics.AnalyticsQuery
}

func (v visits) Report(_ context.Context, q analytics.AnalyticsQuery) (analytics.AnalyticsReport, error) {
	*v.asked = q
	current := int64(7)
	all := analytics.AnalyticsTotal{Views: 900, Visitors: 300, Visits: 400, BounceRate: 50, VisitSeconds: 65}
	r := analytics.AnalyticsReport{Total: all, All: all, Current: &current,
		Previous: analytics.AnalyticsTotal{Views: 600, Visitors: 400, Visits: 400, BounceRate: 40, VisitSeconds: 130},
		Days:     []analytics.AnalyticsDay{{Day: "2026-11-20", Views: 500, Visitors: 100, Visits: 200, BounceRate: 62}},
		Dimensions: map[string][]analytics.AnalyticsItem{"page": {{Name: "/a?b&c", Views: 9, Visits: 4}},
			"referrer": {{Name: "", Views: 5, Visits: 5}}}}
	if q.Dimension != "" {
		r.Total, r.Deleted = analytics.AnalyticsTotal{Views: 200, Visitors: 90, Visits: 100}, 2
	}
	return r, nil
}

// The page of visits compares, draws the figure that was chosen, and filters by what was clicked.
func TestAnalyticsComparesAndFilters(t *testing.T) {
	var asked analytics.AnalyticsQuery
	s := newSite(t, jobstest.SQLite, func(c *config) { c.Parts = feature.Ports{Analytics: visits{asked: &asked}} })
	v := s.visitor(t).signIn("admin")
	page := func(query string, want ...string) {
		t.Helper()
		v.get("/admin/analytics?since=2026-11-01&until=2026-11-20" + query).sees(want...)
	}
	const at = `href="/admin/analytics?`
	page("", `id="current">7<`, `class="ink-bad">-25 %</span> 400 before`, `class="ink-ok">&#43;50 %</span> 600 before`,
		`class="ink-bad">&#43;10</span> 40 % before`, `class="ink-bad">-50 %</span> 2:10 before`,
		"2026-11-20: 100 (Visitors)", "Visitors by day from 2026-11-01 to 2026-11-20",
		at+`figure=bounceRate&amp;since=2026-11-01&amp;until=2026-11-20"`,
		at+`dimension=page&amp;figure=visitors&amp;name=%2Fa%3Fb%26c&amp;since=2026-11-01&amp;until=2026-11-20"`,
		at+`dimension=referrer&amp;figure=visitors&amp;name=&amp;since=2026-11-01&amp;until=2026-11-20"`, ">Direct</a>")
	page("&figure=bounceRate", "2026-11-20: 62 % (Bounce rate)")
	page("&dimension=page&name=%2Fa%3Fb%26c", "Pages: /a?b&amp;c", "100 visits, 25.0 % of all", "2 days are missing",
		at+`figure=visitors&amp;since=2026-11-01&amp;until=2026-11-20"`, // all visits again
		`href="/admin/analytics/export?dimension=page&amp;name=%2Fa%3Fb%26c&amp;since=2026-11-01&amp;until=2026-11-20"`,
		`type="hidden" name="name" value="/a?b&amp;c"`)
	if asked.Dimension != "page" || asked.Name != "/a?b&c" {
		t.Errorf("asked for %+v", asked)
	}
	v.get("/admin/analytics/export?since=2026-11-01&until=2026-11-20&dimension=referrer&name=")
	if asked.Dimension != "referrer" || asked.Name != "" {
		t.Errorf("the export asked for %+v", asked)
	}
	s.admin("GET", "/api/v1/analytics?since=2026-11-01&until=2026-11-20&dimension=shoe", nil).
		want(t, http.StatusBadRequest)
	body := s.admin("GET", "/api/v1/analytics?since=2026-11-01&until=2026-11-20&dimension=entry&name=/", nil).
		want(t, http.StatusOK).body
	if !strings.Contains(string(body), `"current_visitors":7`) || asked.Dimension != "entry" || asked.Name != "/" {
		t.Errorf("the API asked for %+v and answered %s", asked, body)
	}
}
