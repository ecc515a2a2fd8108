package app

import (
	"context"

	"github.com/cmsjobs/cmsjobs/internal/handlers/analytics"
	analyticspage "github.com/cmsjobs/cmsjobs/internal/web/feature/analytics"
)

// webAnalytics shows reports.
type webAnalytics struct{ h *analytics.Handler }

func (a webAnalytics) Report(ctx context.Context, q analyticspage.AnalyticsQuery) (analyticspage.AnalyticsReport,
	error) {
	filter := analytics.Filter{Dimension: q.Dimension, Name: q.Name}
	if filter.Dimension == "system" {
		filter.Dimension = "os" // the word of the tables
	}
	r, err := a.h.Report(ctx, analytics.ReportQuery{Since: q.Since, Until: q.Until, Site: q.Site, Limit: q.Limit,
		Filter: filter})
	if err != nil {
		return analyticspage.AnalyticsReport{}, err
	}
	out := analyticspage.AnalyticsReport{Dimensions: map[string][]analyticspage.AnalyticsItem{}, Total: total(r.Total),
		Previous: total(r.Previous), All: total(r.Total), Current: r.Current, Deleted: r.Deleted}
	if filter.Dimension != "" {
		out.All = total(r.All)
	}
	for _, d := range r.Days {
		out.Days = append(out.Days, analyticspage.AnalyticsDay{Day: d.Day, Views: d.Views, Visitors: d.Visitors,
			Visits: d.Visits, Bounces: d.Bounces,
			BounceRate: d.BounceRate, VisitSeconds: d.VisitSeconds})
	}
	for _, l := range r.Lists {
		items := []analyticspage.AnalyticsItem{}
		for _, i := range l.Items {
			items = append(items, analyticspage.AnalyticsItem{Name: i.Name, Views: i.Views, Visitors: i.Visitors,
				Visits:     i.Visits,
				BounceRate: i.BounceRate, VisitSeconds: i.VisitSeconds, PageSeconds: i.PageSeconds,
				ExitRate: i.ExitRate})
		}
		name := l.Dimension
		if name == "os" {
			name = "system" // the word of the API and the pages
		}
		out.Dimensions[name] = items
	}
	return out, nil
}

func total(f analytics.Figures) analyticspage.AnalyticsTotal {
	return analyticspage.AnalyticsTotal{Views: f.Views, Visitors: f.Visitors, Visits: f.Visits,
		Bounces: f.Bounces, BounceRate: f.BounceRate, VisitSeconds: f.VisitSeconds}
}
