package analytics

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// ReportQuery asks for days, both included, as 2006-01-02 in the CMS's zone.
type ReportQuery struct {
	Since, Until string
	Site         string // "" means all sites together
	Limit        int    // of each list; 0 means 20
	Filters      []Filter
}

// Figures are the counts of a day, or of one value of a dimension. Visitors
// are those of each day, added up: a visitor of two days counts twice, as the
// service cannot know that it was the same one.
//
// A bounce is a visit of one view and no event. VisitSeconds is how long a visit lasted
// on average, from its first view or event to its last: a bounce lasts 0. PageSeconds, of
// pages only, is how long it was on average to the next view of the visit; views
// that ended one are left out.
type Figures struct {
	Views    int64 `json:"views" db:"views"`
	Visitors int64 `json:"visitors" db:"visitors"`
	Visits   int64 `json:"visits" db:"visits"`
	Bounces  int64 `json:"bounces" db:"bounces"`
	TimeMS   int64 `json:"timeMs" db:"time_ms"`
	Timed    int64 `json:"timedViews" db:"timed"`

	BounceRate   float64 `json:"bounce_rate"` // percent of visits, one decimal
	VisitSeconds int64   `json:"visit_seconds"`
	PageSeconds  int64   `json:"page_seconds,omitempty"`
	// ExitRate, of exit pages only, is how many percent of the page's views
	// ended a visit.
	ExitRate float64 `json:"exit_rate,omitempty"`
	// ConversionRate, of goals and events only, is how many percent of the visitors
	// reached it. Their Views are how often it was reached.
	ConversionRate float64 `json:"conversion_rate,omitempty"`
}

// rates fills in what follows from the sums.
func (f Figures) rates(dimension string) Figures {
	switch dimension {
	case dimPage:
		if f.Timed > 0 {
			f.PageSeconds = (f.TimeMS + 500*f.Timed) / (1000 * f.Timed)
		}
	case dimExit, dimBot, dimGoal, dimEvent:
	default:
		f.BounceRate = percent(f.Bounces, f.Visits)
		if f.Visits > 0 {
			f.VisitSeconds = (f.TimeMS + 500*f.Visits) / (1000 * f.Visits)
		}
	}
	return f
}

func percent(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return math.Round(1000*float64(part)/float64(whole)) / 10
}

// Day is one calendar day of the CMS.
type Day struct {
	Day string `json:"day" db:"day"`
	Figures
}

// Item is one value of a dimension, e.g. one page.
type Item struct {
	Name string `json:"name" db:"name"`
	Figures
}

// List is the top of a dimension.
type List struct {
	Dimension string `json:"dimension"`
	Title     string `json:"title"`
	Items     []Item `json:"items"`
	Others    int64  `json:"others"` // how many more there are
}

// Report is what a range of days says.
type Report struct {
	Since    string   `json:"since"`
	Until    string   `json:"until"`
	Site     string   `json:"site,omitempty"`
	Zone     string   `json:"zone"`
	Total    Figures  `json:"total"`
	Previous Figures  `json:"previous"` // of as many days before
	Excluded Figures  `json:"excluded"` // bots and referrer spam
	Filters  []Filter `json:"filters,omitempty"`
	Days     []Day    `json:"days"`
	Hours    []Hour   `json:"hours,omitempty"` // of a range of one day
	Lists    []List   `json:"lists"`
	// Current are the visitors of the last five minutes; nil where that is unknown.
	Current *int64 `json:"current_visitors,omitempty"`
	// All, of a filtered report only, is the whole range; Deleted the days whose single views
	// are deleted: they are missing.
	All     Figures `json:"all,omitzero"`
	Deleted int     `json:"deleted_days,omitempty"`
}

// lists are the dimensions of a report, in its order.
var lists = [...]struct{ dimension, title string }{
	{dimPage, "Pages"}, {dimEntry, "Entry pages"}, {dimExit, "Exit pages"}, {dimChannel, "Channels"},
	{dimReferrer, "Sources"}, {dimCountry, "Countries"}, {dimDevice, "Devices"}, {dimBrowser, "Browsers"},
	{dimOS, "Systems"}, {dimCampaign, "Campaigns"}, {dimTerm, "Campaign terms"}, {dimContent, "Campaign contents"},
	{dimGoal, "Goals"}, {dimEvent, "Events"},
}

// maxReportDays bounds a report.
const maxReportDays = 3 * 366

// Report reads the rolled-up figures of a range.
func (h *Handler) Report(ctx context.Context, q ReportQuery) (Report, error) {
	since, err1 := time.Parse(time.DateOnly, q.Since)
	until, err2 := time.Parse(time.DateOnly, q.Until)
	if err1 != nil || err2 != nil || until.Before(since) {
		return Report{}, jobs.Invalid(fmt.Errorf("a report needs days as 2006-01-02, the first not after the last; "+
			"got %q to %q", q.Since, q.Until))
	}
	length := int(until.Sub(since).Hours()/24) + 1
	if length > maxReportDays {
		return Report{}, jobs.Invalid(fmt.Errorf("a report may cover %d days at most", maxReportDays))
	}
	if q.Limit <= 0 {
		q.Limit = 20
	}
	zone, err := h.Site.Zone(ctx)
	if err != nil {
		return Report{}, err
	}
	r := Report{Since: q.Since, Until: q.Until, Site: q.Site, Zone: zone.String(), Filters: q.Filters}
	if length == 1 {
		if r.Hours, err = hoursOf(q.Since, zone); err != nil {
			return r, err
		}
	}
	before := ReportQuery{Since: since.AddDate(0, 0, -length).Format(time.DateOnly),
		Until: since.AddDate(0, 0, -1).Format(time.DateOnly), Site: q.Site, Filters: q.Filters}
	if r.Current, err = h.current(ctx, q.Site, zone); err != nil {
		return r, err
	}
	if len(q.Filters) > 0 {
		r.Days = daysOf(since, length, nil)
		err = h.filtered(ctx, q, before, &r)
		return r, err
	}
	err = h.rolledUp(ctx, q, before, since, length, &r)
	return r, err
}

// rolledUp fills a report in from the figures of all visits.
func (h *Handler) rolledUp(ctx context.Context, q, before ReportQuery, since time.Time, length int,
	r *Report) (err error) {
	if r.Days, err = h.days(ctx, q, since, length); err != nil {
		return err
	}
	for _, d := range r.Days {
		r.Total = r.Total.plus(d.Figures)
	}
	r.Total = r.Total.rates(dimTotal)
	if r.Previous, err = h.sum(ctx, before, dimTotal); err != nil {
		return err
	}
	if len(r.Hours) > 0 {
		if err = h.fillHours(ctx, q, r.Hours); err != nil {
			return err
		}
	}
	if r.Excluded, err = h.sum(ctx, q, dimBot); err != nil {
		return err
	}
	for _, l := range lists {
		list, err := h.top(ctx, q, l.dimension)
		if err != nil {
			return err
		}
		list.Title = l.title
		r.Lists = append(r.Lists, list)
	}
	r.Lists = h.withGoals(r.Lists, r.Total.Visitors)
	return nil
}

// withGoals lists every goal that there is, also those that nobody reached, and no
// other, with the part of the visitors that reached it.
func (h *Handler) withGoals(lists []List, visitors int64) []List {
	for i, l := range lists {
		if l.Dimension == dimGoal {
			items := slices.DeleteFunc(l.Items, func(i Item) bool { return h.goals.named(i.Name) == nil })
			for _, g := range h.goals {
				if !slices.ContainsFunc(items, func(i Item) bool { return i.Name == g.Name }) {
					items = append(items, Item{Name: g.Name})
				}
			}
			l.Items, lists[i].Items = items, items
		}
		if l.Dimension == dimGoal || l.Dimension == dimEvent {
			for j := range l.Items {
				l.Items[j].ConversionRate = percent(l.Items[j].Visitors, visitors)
			}
		}
	}
	return lists
}

func (f Figures) plus(g Figures) Figures {
	return Figures{Views: f.Views + g.Views, Visitors: f.Visitors + g.Visitors, Visits: f.Visits + g.Visits,
		Bounces: f.Bounces + g.Bounces, TimeMS: f.TimeMS + g.TimeMS, Timed: f.Timed + g.Timed}
}

// SUM is NULL where there is no row, and no integer in PostgreSQL and MySQL.
const sums = "COALESCE(SUM(views), 0) AS views, COALESCE(SUM(visitors), 0) AS visitors, COALESCE(SUM(visits), 0) AS " +
	"visits, " +
	"COALESCE(SUM(bounces), 0) AS bounces, COALESCE(SUM(time_ms), 0) AS time_ms, COALESCE(SUM(timed), 0) AS timed"

// where bounds a query on the daily table.
func (q ReportQuery) where(dimension string) (string, []any) {
	where, args := " FROM cmsjobs_analytics_daily WHERE day BETWEEN ? AND ? AND dimension = ?",
		[]any{q.Since, q.Until, dimension}
	if q.Site != "" {
		where, args = where+" AND site = ?", append(args, q.Site)
	}
	return where, args
}

// days returns every day of the range, also those without a view.
func (h *Handler) days(ctx context.Context, q ReportQuery, since time.Time, length int) ([]Day, error) {
	where, args := q.where(dimTotal)
	var found []Day
	if err := h.DB.SelectContext(ctx, &found, h.DB.Rebind("SELECT day, "+sums+where+" GROUP BY day"),
		args...); err != nil {
		return nil, fmt.Errorf("reading the figures of the days: %w", err)
	}
	known := map[string]Figures{}
	for _, d := range found {
		known[d.Day] = d.Figures.rates(dimTotal)
	}
	return daysOf(since, length, known), nil
}

func daysOf(since time.Time, length int, known map[string]Figures) []Day {
	all := make([]Day, length)
	for i := range all {
		day := since.AddDate(0, 0, i).Format(time.DateOnly)
		all[i] = Day{day, known[day]}
	}
	return all
}

func (h *Handler) sum(ctx context.Context, q ReportQuery, dimension string) (Figures, error) {
	where, args := q.where(dimension)
	var f Figures
	if err := h.DB.GetContext(ctx, &f, h.DB.Rebind("SELECT "+sums+where), args...); err != nil {
		return Figures{}, fmt.Errorf("adding up the figures of %s: %w", dimension, err)
	}
	return f.rates(dimension), nil
}

func (h *Handler) top(ctx context.Context, q ReportQuery, dimension string) (List, error) {
	if dimension == dimGoal {
		q.Limit = math.MaxInt32 // they are as many as the configuration has, or had
	}
	where, args := q.where(dimension)
	list := List{Dimension: dimension, Items: []Item{}}
	query := "SELECT name, " + sums + where + " GROUP BY name ORDER BY visits DESC, views DESC, name LIMIT ?"
	if err := h.DB.SelectContext(ctx, &list.Items, h.DB.Rebind(query), append(args, q.Limit)...); err != nil {
		return list, fmt.Errorf("reading the top of %s: %w", dimension, err)
	}
	for i := range list.Items {
		list.Items[i].Figures = list.Items[i].Figures.rates(dimension)
	}
	if dimension == dimExit {
		if err := h.exitRates(ctx, q, list.Items); err != nil {
			return list, err
		}
	}
	if len(list.Items) < q.Limit {
		return list, nil
	}
	var all int64
	if err := h.DB.GetContext(ctx, &all, h.DB.Rebind("SELECT COUNT(DISTINCT name)"+where), args...); err != nil {
		return list, fmt.Errorf("counting %s: %w", dimension, err)
	}
	list.Others = all - int64(len(list.Items))
	return list, nil
}

// exitRates compares exits with the views of their pages.
func (h *Handler) exitRates(ctx context.Context, q ReportQuery, exits []Item) error {
	if len(exits) == 0 {
		return nil
	}
	where, args := q.where(dimPage)
	for _, e := range exits {
		args = append(args, e.Name)
	}
	var pages []Item
	query := "SELECT name, " + sums + where + " AND name IN (" + database.Marks(len(exits)) + ") GROUP BY name"
	if err := h.DB.SelectContext(ctx, &pages, h.DB.Rebind(query), args...); err != nil {
		return fmt.Errorf("reading the views of exit pages: %w", err)
	}
	views := map[string]int64{}
	for _, p := range pages {
		views[p.Name] = p.Views
	}
	for i := range exits {
		exits[i].ExitRate = percent(exits[i].Visits, views[exits[i].Name])
	}
	return nil
}
