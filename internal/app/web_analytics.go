package app

import (
	"context"

	"github.com/cmsjobs/cmsjobs/internal/handlers/analytics"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	analyticspage "github.com/cmsjobs/cmsjobs/internal/web/feature/analytics"
)

// webAnalytics shows reports.
type webAnalytics struct{ h *analytics.Handler }

func (a webAnalytics) Report(ctx context.Context, q analyticspage.AnalyticsQuery) (analyticspage.AnalyticsReport,
	error) {
	asked := analytics.ReportQuery{Since: q.Since, Until: q.Until, Site: q.Site, Limit: q.Limit}
	for _, f := range q.Filters {
		asked.Filters = append(asked.Filters, analytics.Filter(f))
	}
	r, err := a.h.Report(ctx, asked)
	if err != nil {
		return analyticspage.AnalyticsReport{}, err
	}
	out := analyticspage.AnalyticsReport{Dimensions: map[string][]analyticspage.AnalyticsItem{}, Total: total(r.Total),
		Previous: total(r.Previous), All: total(r.Total), Current: r.Current, Deleted: r.Deleted}
	if len(q.Filters) > 0 {
		out.All = total(r.All)
	}
	out.Days = ops.Each(r.Days, func(d analytics.Day) analyticspage.AnalyticsDay {
		return analyticspage.AnalyticsDay{Day: d.Day, Views: d.Views, Visitors: d.Visitors, Visits: d.Visits,
			Bounces: d.Bounces, BounceRate: d.BounceRate, VisitSeconds: d.VisitSeconds}
	})
	out.Hours = ops.Each(r.Hours, func(h analytics.Hour) analyticspage.AnalyticsHour {
		return analyticspage.AnalyticsHour{Hour: h.Hour, Views: h.Views, Visitors: h.Visitors, Visits: h.Visits,
			Bounces: h.Bounces, BounceRate: h.BounceRate, VisitSeconds: h.VisitSeconds}
	})
	for _, l := range r.Lists {
		out.Dimensions[l.Dimension] = ops.Each(l.Items, func(i analytics.Item) analyticspage.AnalyticsItem {
			return analyticspage.AnalyticsItem{Name: i.Name, Views: i.Views, Visitors: i.Visitors, Visits: i.Visits,
				BounceRate: i.BounceRate, VisitSeconds: i.VisitSeconds, PageSeconds: i.PageSeconds,
				ExitRate: i.ExitRate, ConversionRate: i.ConversionRate}
		})
	}
	return out, nil
}

func total(f analytics.Figures) analyticspage.AnalyticsTotal {
	return analyticspage.AnalyticsTotal{Views: f.Views, Visitors: f.Visitors, Visits: f.Visits,
		Bounces: f.Bounces, BounceRate: f.BounceRate, VisitSeconds: f.VisitSeconds}
}
