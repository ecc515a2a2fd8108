package analytics

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/locale"
)

type analyticsPageData struct {
	Configured   bool
	Since, Until string
	Range        string
	Ranges       []string
	Figure       string // which one the graph shows
	Filters      []AnalyticsFilter
	Plot         template.HTML
	Total        AnalyticsTotal
	Tiles        []analyticsTile
	Current      *int64
	Share        string // of the visits that the filters select
	Deleted      int
	Lists        []analyticsList
}

type analyticsList struct {
	Name  string
	Items []AnalyticsItem
	Top   int64
}

// Heads are the keys of the two figures that all dimensions have, and of the one more
// that this one has.
func (l analyticsList) Heads() []string {
	if l.Rated() {
		return []string{"analytics.conversions", "analytics.uniqueConversions", "analytics.conversionRate"}
	}
	return []string{"analytics.views", "analytics.visitors", l.more()}
}

// Rated says whether the list is of what visits reached.
func (l analyticsList) Rated() bool { return l.Name == "goal" || l.Name == "event" }

func (l analyticsList) more() string {
	switch l.Name {
	case "page":
		return "analytics.pageTime"
	case "exit":
		return "analytics.exitRate"
	}
	return "analytics.bounceRate"
}

// Figure is the one more figure of an item.
func (l analyticsList) Figure(i AnalyticsItem) string {
	switch l.Name {
	case "page":
		return clockTime(i.PageSeconds)
	case "exit":
		return fmt.Sprintf("%.0f %%", i.ExitRate)
	case "goal", "event":
		return fmt.Sprintf("%.1f %%", i.ConversionRate)
	}
	return fmt.Sprintf("%.0f %%", i.BounceRate)
}

// clockTime writes seconds as 1:05 or 1:02:03.
func clockTime(seconds int64) string {
	if seconds < 3600 {
		return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
}

var analyticsRanges = map[string]int{"1": 1, "7": 7, "30": 30, "90": 90, "365": 365}

// analyticsDays reads the days asked for: a range, or from and until.
func (h handlers) analyticsDays(r *web.Request, v *analyticsPageData) error {
	v.Ranges, v.Range, v.Since, v.Until = []string{"1", "7", "30", "90", "365"}, r.QueryParam("range"),
		r.QueryParam("since"), r.QueryParam("until")
	for field, day := range map[string]string{"since": v.Since, "until": v.Until} {
		if _, err := time.Parse(time.DateOnly, day); day != "" && err != nil {
			return web.RefuseField(http.StatusBadRequest, field, "%s must be a day as 2026-11-21, not %q.", field,
				redact.Clip(day, 40))
		}
	}
	if v.Since == "" && v.Until == "" && analyticsRanges[v.Range] == 0 {
		v.Range = "30"
	}
	if days := analyticsRanges[v.Range]; days > 0 {
		now := r.Now()
		v.Since, v.Until = now.AddDate(0, 0, 1-days).Format(time.DateOnly), now.Format(time.DateOnly)
	}
	if v.Figure = r.QueryParam("figure"); !slices.Contains(figures[:], v.Figure) {
		v.Figure = figures[0]
	}
	return nil
}

// query asks for the days and visits of a page.
func (v *analyticsPageData) query(r *web.Request, limit int) (AnalyticsQuery, error) {
	q := AnalyticsQuery{Since: v.Since, Until: v.Until, Limit: limit}
	err := q.selected(r)
	v.Filters = q.Filters
	return q, err
}

func (h handlers) analyticsPage(r *web.Request) error {
	v := analyticsPageData{Configured: h.port != nil}
	if err := h.analyticsDays(r, &v); err != nil {
		return err
	}
	if !v.Configured {
		return r.Show(web.PageView{Name: "analytics", Data: v, Ready: true})
	}
	q, err := v.query(r, 10)
	if err != nil {
		return err
	}
	report, ready, err := h.cachedReport(r, q)
	if err != nil {
		return fmt.Errorf("reading analytics: %w", err)
	}
	v.fill(r.Printer(), report)
	return r.Show(web.PageView{Name: "analytics", Data: v, Ready: ready})
}

// fill puts a report on the page.
func (v *analyticsPageData) fill(lang locale.Printer, report AnalyticsReport) {
	v.Total, v.Current, v.Deleted = report.Total, report.Current, report.Deleted
	v.Tiles = tiles(lang, report)
	if len(v.Filters) > 0 {
		v.Share = fmt.Sprintf("%.1f %%", percent(report.Total.Visits, report.All.Visits))
	}
	if report.Total.Views > 0 {
		v.Plot = plot(*v, lang, report)
	}
	order := func(name string) int {
		if i := slices.Index(dimensions[:], name); i >= 0 {
			return i
		}
		return len(dimensions)
	}
	names := slices.SortedFunc(maps.Keys(report.Dimensions), func(a, b string) int {
		return cmp.Or(order(a)-order(b), strings.Compare(a, b))
	})
	for _, name := range names {
		list := analyticsList{Name: name, Items: report.Dimensions[name], Top: 1}
		for _, item := range list.Items {
			list.Top = max(list.Top, item.Views)
		}
		if len(list.Items) > 0 {
			v.Lists = append(v.Lists, list)
		}
	}
}

// exportAnalytics writes the same figures for a spreadsheet.
func (h handlers) exportAnalytics(r *web.Request) error {
	var v analyticsPageData
	if err := h.analyticsDays(r, &v); err != nil {
		return err
	}
	q, err := v.query(r, r.PageLimit())
	if err != nil {
		return err
	}
	report, err := h.port.Report(r.Ctx(), q)
	if err != nil {
		return fmt.Errorf("reading analytics: %w", err)
	}
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	rate := func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
	rows := [][]string{{"dimension", "name", "views", "visitors", "visits", "bounce_rate", "visit_seconds",
		"page_seconds", "exit_rate", "conversion_rate"}}
	for _, d := range report.Days {
		rows = append(rows, []string{"day", d.Day, n(d.Views), n(d.Visitors), n(d.Visits), rate(d.BounceRate),
			n(d.VisitSeconds), "", "", ""})
	}
	for _, d := range report.Hours {
		rows = append(rows, []string{"hour", d.Hour, n(d.Views), n(d.Visitors), n(d.Visits), rate(d.BounceRate),
			n(d.VisitSeconds), "", "", ""})
	}
	for _, name := range slices.Sorted(maps.Keys(report.Dimensions)) {
		for _, item := range report.Dimensions[name] {
			rows = append(rows, []string{name, cell(item.Name), n(item.Views), n(item.Visitors), n(item.Visits),
				rate(item.BounceRate), n(item.VisitSeconds), n(item.PageSeconds), rate(item.ExitRate),
				rate(item.ConversionRate)})
		}
	}
	header := r.Response().Header()
	header.Set(echo.HeaderContentType, "text/csv; charset=utf-8")
	header.Set(echo.HeaderContentDisposition, `attachment; filename="analytics.csv"`)
	r.Response().WriteHeader(http.StatusOK)
	w := csv.NewWriter(r.Response())
	if err := w.WriteAll(rows); err != nil {
		r.Log().Debug("export aborted", "event", "web.export_failed", "error", err)
	}
	return nil
}

// cell keeps a spreadsheet from running a name that begins like a formula.
func cell(name string) string {
	if name != "" && strings.ContainsRune("=+-@\t\r", rune(name[0])) {
		return "'" + name
	}
	return name
}

func (h handlers) cachedReport(r *web.Request, q AnalyticsQuery) (AnalyticsReport, bool, error) {
	return web.Cached(r, fmt.Sprintf("report %+v", q),
		func(ctx context.Context) (AnalyticsReport, error) { return h.port.Report(ctx, q) })
}
