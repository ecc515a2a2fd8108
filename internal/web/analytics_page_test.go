package web_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
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
			"referrer": {{Name: "", Views: 5, Visits: 5}},
			"channel":  {{Name: "search", Views: 5, Visits: 5}},
			"goal":     {{Name: "Order", Views: 31, Visitors: 30, Visits: 30, ConversionRate: 10}}}}
	if q.Since == q.Until {
		r.Hours = []analytics.AnalyticsHour{{Hour: "2026-11-20T00:00:00+07:00"},
			{Hour: "2026-11-20T23:00:00+07:00", Visitors: 12}}
	}
	if len(q.Filters) > 0 {
		r.Total, r.Deleted = analytics.AnalyticsTotal{Views: 200, Visitors: 90, Visits: 100}, 2
	}
	return r, nil
}

// The page of visits compares, draws the figure that was chosen, and filters by all that was clicked.
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
		at+`figure=visitors&amp;filter=page%3A%2Fa%3Fb%26c&amp;since=2026-11-01&amp;until=2026-11-20"`,
		at+`figure=visitors&amp;filter=referrer%3A&amp;since=2026-11-01&amp;until=2026-11-20"`, ">Direct</a>",
		at+`figure=visitors&amp;filter=channel%3Asearch&amp;since=2026-11-01&amp;until=2026-11-20"`, ">Search</a>",
		at+`figure=visitors&amp;filter=goal%3AOrder&amp;since=2026-11-01&amp;until=2026-11-20"`, ">Unique</th>", ">Total</th>", ">Rate</th>",
		`<td class="num">31</td>`, `<td class="num">30</td>`, `<td class="num">10.0 %</td>`)
	page("&figure=bounceRate", "2026-11-20: 62 % (Bounce rate)")
	const one, other = "filter=page%3A%2Fa%3Fb%26c", "filter=goal%3AOrder"
	page("&"+one+"&"+other, `aria-label="Remove Pages: /a?b&amp;c"`, `aria-label="Remove Goals: Order"`, "100 visits, 25.0 % of all", "2 days are missing",
		at+`figure=visitors&amp;`+other+`&amp;since=2026-11-01&amp;until=2026-11-20"`, // without the page
		at+`figure=visitors&amp;`+one+`&amp;since=2026-11-01&amp;until=2026-11-20"`,   // without the goal
		at+`figure=visitors&amp;since=2026-11-01&amp;until=2026-11-20"`,               // all visits again
		at+`figure=visitors&amp;`+one+"&amp;"+other+`&amp;filter=channel%3Asearch&amp;since=2026-11-01&amp;until=2026-11-20"`,
		`href="/admin/analytics/export?`+one+"&amp;"+other+`&amp;since=2026-11-01&amp;until=2026-11-20"`,
		`type="hidden" name="filter" value="page:/a?b&amp;c"`, `type="hidden" name="filter" value="goal:Order"`)
	both := []analytics.AnalyticsFilter{{Dimension: "page", Name: "/a?b&c"}, {Dimension: "goal", Name: "Order"}}
	if !slices.Equal(asked.Filters, both) {
		t.Errorf("asked for %+v", asked)
	}
	v.get("/admin/analytics?since=2026-11-20&until=2026-11-20").sees("Visitors by hour on 2026-11-20", "23:00: 12 (Visitors)")
	v.get("/admin/analytics/export?since=2026-11-01&until=2026-11-20&filter=referrer:&" + other)
	if !slices.Equal(asked.Filters, []analytics.AnalyticsFilter{{Dimension: "referrer"}, both[1]}) {
		t.Errorf("the export asked for %+v", asked)
	}
	const api = "/api/v1/analytics?since=2026-11-01&until=2026-11-20"
	for _, wrong := range []string{"&filter=shoe:1", "&filter=page", manyFilters(21)} {
		s.admin("GET", api+wrong, nil).want(t, http.StatusBadRequest)
	}
	body := s.admin("GET", api+"&filter=entry:/a:b&"+other, nil).want(t, http.StatusOK).body
	if !strings.Contains(string(body), `"current_visitors":7`) || !strings.Contains(string(body), `"conversion_rate":10`) ||
		!slices.Equal(asked.Filters, []analytics.AnalyticsFilter{{Dimension: "entry", Name: "/a:b"}, both[1]}) {
		t.Errorf("the API asked for %+v and answered %s", asked, body)
	}
}

func manyFilters(n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "&filter=page:/%d", i)
	}
	return all.String()
}
