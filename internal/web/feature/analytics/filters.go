package analytics

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// dimensions are those by which visits can be filtered, in the order of the page.
var dimensions = [...]string{"goal", "event", "channel", "referrer", "campaign", "term", "content", "page", "entry",
	"exit", "country", "device", "browser", "system"}

// maxFilters bounds the filters of a request.
const maxFilters = 20

// selected reads the filters of visits, which are written as page:/news.
func (q *AnalyticsQuery) selected(r *web.Request) error {
	for _, text := range r.QueryParams()["filter"] {
		dimension, name, found := strings.Cut(text, ":")
		if !found || !slices.Contains(dimensions[:], dimension) {
			return web.RefuseField(http.StatusBadRequest, "filter", "filter must be written as page:/news, with one "+
				"of %s before the colon, not %q.", strings.Join(dimensions[:], ", "), redact.Clip(text, 40))
		}
		q.Filters = withFilter(q.Filters, AnalyticsFilter{dimension, redact.Clip(name, 500)})
	}
	if len(q.Filters) > maxFilters {
		return web.RefuseField(http.StatusBadRequest, "filter", "%d filters are too many: a report has %d at most.",
			len(q.Filters), maxFilters)
	}
	return nil
}

// withFilter adds a filter that is not there yet.
func withFilter(all []AnalyticsFilter, f AnalyticsFilter) []AnalyticsFilter {
	if slices.Contains(all, f) {
		return all
	}
	return append(slices.Clone(all), f)
}

// Text is the filter as addresses and commands have it.
func (f AnalyticsFilter) Text() string { return f.Dimension + ":" + f.Name }

// Address is this page with other words of its query; "" leaves a word out.
func (v analyticsPageData) Address(words ...string) string {
	q := url.Values{"range": {v.Range}, "figure": {v.Figure}}
	if v.Range == "" {
		q.Set("since", v.Since)
		q.Set("until", v.Until)
	}
	for i := 0; i+1 < len(words); i += 2 {
		q.Set(words[i], words[i+1])
	}
	maps.DeleteFunc(q, func(_ string, values []string) bool { return values[0] == "" })
	return v.filtered("/admin/analytics", q)
}

// With is this page with one more filter.
func (v analyticsPageData) With(dimension, name string) string {
	v.Filters = withFilter(v.Filters, AnalyticsFilter{dimension, name})
	return v.Address()
}

// Without is this page without one of its filters.
func (v analyticsPageData) Without(i int) string {
	v.Filters = slices.Delete(slices.Clone(v.Filters), i, i+1)
	return v.Address()
}

// Unfiltered is this page with all visits.
func (v analyticsPageData) Unfiltered() string {
	v.Filters = nil
	return v.Address()
}

// Export is the address of the same figures for a spreadsheet.
func (v analyticsPageData) Export() string {
	return v.filtered("/admin/analytics/export", url.Values{"since": {v.Since}, "until": {v.Until}})
}

func (v analyticsPageData) filtered(path string, q url.Values) string {
	for _, f := range v.Filters {
		q.Add("filter", f.Text())
	}
	return path + "?" + q.Encode()
}
