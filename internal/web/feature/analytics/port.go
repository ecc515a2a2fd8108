package analytics

import (
	"context"
)

// Port shows rolled-up visits.
type Port interface {
	Report(ctx context.Context, q AnalyticsQuery) (AnalyticsReport, error)
}

// AnalyticsQuery asks for days, both included, as "2006-01-02" in the CMS's
// zone, and for the top entries of each dimension.
type AnalyticsQuery struct {
	Since, Until string
	Site         string
	Limit        int
	Filters      []AnalyticsFilter // a visit fits all of them
}

// AnalyticsFilter selects the visits with this value of a dimension, for example of
// this page.
type AnalyticsFilter struct{ Dimension, Name string }

// AnalyticsReport is figures by day and by dimension: goal, event, channel, referrer, campaign,
// term and content (of campaigns), page, entry, exit, country, device, browser, system. A range
// of one day has figures by hour, too.
type AnalyticsReport struct {
	Total      AnalyticsTotal             `json:"total"`
	Previous   AnalyticsTotal             `json:"previous"`                   // of as many days before
	All        AnalyticsTotal             `json:"all"`                        // of all visits; differs from Total under a filter
	Current    *int64                     `json:"current_visitors,omitempty"` // of the last five minutes, where known
	Deleted    int                        `json:"deleted_days"`               // days that a filter cannot read any more
	Days       []AnalyticsDay             `json:"days"`
	Hours      []AnalyticsHour            `json:"hours,omitempty"`
	Dimensions map[string][]AnalyticsItem `json:"dimensions"`
}

// AnalyticsTotal is the whole range. BounceRate is percent of visits with one
// view, VisitSeconds how long visits lasted on average.
type AnalyticsTotal struct {
	Views        int64   `json:"views"`
	Visitors     int64   `json:"visitors"`
	Visits       int64   `json:"visits"`
	Bounces      int64   `json:"bounces"`
	BounceRate   float64 `json:"bounce_rate"`
	VisitSeconds int64   `json:"visit_seconds"`
}

// AnalyticsDay is one calendar day of the CMS.
type AnalyticsDay struct {
	Day      string `json:"day"`
	Views    int64  `json:"views"`
	Visitors int64  `json:"visitors"`
	Visits   int64  `json:"visits"`
	Bounces  int64  `json:"bounces"`

	BounceRate   float64 `json:"bounce_rate"`
	VisitSeconds int64   `json:"visit_seconds"`
}

// AnalyticsHour is one hour of the CMS's clock; Hour is its first moment, by RFC 3339.
type AnalyticsHour struct {
	Hour     string `json:"hour"`
	Views    int64  `json:"views"`
	Visitors int64  `json:"visitors"`
	Visits   int64  `json:"visits"`
	Bounces  int64  `json:"bounces"`

	BounceRate   float64 `json:"bounce_rate"`
	VisitSeconds int64   `json:"visit_seconds"`
}

// AnalyticsItem is one value of a dimension. A page has PageSeconds, how long
// it was to the next view on average; an exit page ExitRate, how many percent
// of its views ended a visit; a goal and an event have ConversionRate, how many
// percent of the visitors reached it, and as Views how often it was reached; the
// others have BounceRate and VisitSeconds.
type AnalyticsItem struct {
	Name     string `json:"name"`
	Views    int64  `json:"views"`
	Visitors int64  `json:"visitors"`
	Visits   int64  `json:"visits"`

	BounceRate   float64 `json:"bounce_rate"`
	VisitSeconds int64   `json:"visit_seconds"`
	PageSeconds  int64   `json:"page_seconds"`
	ExitRate     float64 `json:"exit_rate"`

	ConversionRate float64 `json:"conversion_rate"`
}

type handlers struct{ port Port }
