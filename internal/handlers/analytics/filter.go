package analytics

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Filter selects visits: those with a view of this value, for example of this page or from this
// source. Of the dimension entry it selects visits that began with the page, of exit visits that
// ended with it. The zero value selects all.
type Filter struct{ Dimension, Name string }

// maxFilteredViews bounds what one filtered report reads.
const maxFilteredViews = 2_000_000

// viewSink takes the views of a day, visitor by visitor, each in the order of time.
type viewSink interface{ add(r *row) }

// visitFilter passes the views of the selected visits on.
type visitFilter struct {
	filter Filter
	site   string // "" means all
	to     *tally
	rows   []row // of the present visit
	seen   int64 // views that were read
}

func (v *visitFilter) add(r *row) {
	v.seen++
	if r.kind != kindView || v.site != "" && r.site != v.site || v.seen > maxFilteredViews {
		return
	}
	if n := len(v.rows); n > 0 {
		last := &v.rows[n-1]
		if last.visitor != r.visitor || last.site != r.site || r.at-last.at > visitGap.Milliseconds() {
			v.endVisit()
		}
	}
	v.rows = append(v.rows, *r)
}

// endVisit must follow the last view, too.
func (v *visitFilter) endVisit() {
	if len(v.rows) > 0 && v.filter.selects(v.rows) {
		for i := range v.rows {
			v.to.add(&v.rows[i])
		}
	}
	v.rows = v.rows[:0]
}

// selects agrees with the tally: the visits that it counts for a value are those that the value selects.
func (f Filter) selects(visit []row) bool {
	switch {
	case f.Dimension == dimEntry:
		return visit[0].path == f.Name
	case f.Dimension == dimExit:
		return visit[len(visit)-1].path == f.Name
	case f.Dimension == dimReferrer && f.Name == "":
		return visit[0].referrer == ""
	}
	return slices.ContainsFunc(visit, func(r row) bool {
		switch f.Dimension {
		case dimPage:
			return r.path == f.Name
		case dimReferrer:
			return r.referrer == f.Name
		case dimCountry:
			return r.country == f.Name
		case dimDevice:
			return r.device == f.Name
		case dimBrowser:
			return r.browser == f.Name
		case dimOS:
			return r.os == f.Name
		}
		return f.Dimension == dimCampaign && r.campaign == f.Name
	})
}

// filtered makes the report of selected visits. It reads single views: of days whose views were
// deleted there is nothing.
func (h *Handler) filtered(ctx context.Context, q ReportQuery, before ReportQuery, r *Report) (err error) {
	known := func(l struct{ dimension, title string }) bool { return l.dimension == q.Filter.Dimension }
	if !slices.ContainsFunc(lists[:], known) {
		return jobs.Invalid(fmt.Errorf("visits cannot be filtered by %q", q.Filter.Dimension))
	}
	if r.All, err = h.sum(ctx, q, dimTotal); err != nil {
		return err
	}
	past, seen, err := h.selected(ctx, before, 0)
	if err != nil {
		return err
	}
	for _, day := range past {
		r.Previous = r.Previous.plus(day.total())
	}
	r.Previous = r.Previous.rates(dimTotal)
	days, _, err := h.selected(ctx, q, seen)
	if err != nil {
		return err
	}
	sums := map[key]*figures{}
	for i, day := range r.Days {
		t := days[day.Day]
		if t == nil {
			continue
		}
		r.Days[i].Figures = t.total().rates(dimTotal)
		r.Total = r.Total.plus(t.total())
		for k, f := range t.daily {
			k.site = ""
			if sums[k] == nil {
				sums[k] = &figures{}
			}
			sums[k].plus(f)
		}
	}
	r.Total = r.Total.rates(dimTotal)
	r.Lists = listsOf(sums, q.Limit)
	deleted := h.DB.Rebind("SELECT COUNT(*) FROM cmsjobs_analytics_days WHERE day BETWEEN ? AND ? AND version < 0")
	if err := h.DB.GetContext(ctx, &r.Deleted, deleted, q.Since, q.Until); err != nil {
		return fmt.Errorf("counting the days without single views: %w", err)
	}
	return nil
}

// selected counts the selected visits of each day; seen views were read before.
func (h *Handler) selected(ctx context.Context, q ReportQuery, seen int64) (map[string]*tally, int64, error) {
	days, err := h.due(ctx, ProcessPayload{DateRange: &DateRange{q.Since, q.Until}})
	if err != nil {
		return nil, 0, err
	}
	feed := h.feed
	if h.Mapped != nil {
		feed = h.feedMapped
	}
	found := map[string]*tally{}
	for _, day := range days {
		v := visitFilter{filter: q.Filter, site: q.Site, to: newTally(), seen: seen}
		if _, err := feed(ctx, day, &v); err != nil {
			return nil, 0, err
		}
		if seen = v.seen; seen > maxFilteredViews {
			return nil, 0, jobs.Invalid(fmt.Errorf("these days and those before have more than %d views: filter a "+
				"shorter period", maxFilteredViews))
		}
		v.endVisit()
		v.to.endVisit()
		found[day] = v.to
	}
	return found, seen, nil
}

// total is the day's, of all sites that were counted.
func (t *tally) total() (sum Figures) {
	for k, f := range t.daily {
		if k.dimension == dimTotal {
			sum = sum.plus(f.public())
		}
	}
	return sum
}

func (f *figures) plus(g *figures) {
	*f = figures{views: f.views + g.views, visitors: f.visitors + g.visitors, visits: f.visits + g.visits,
		bounces: f.bounces + g.bounces, timeMS: f.timeMS + g.timeMS, timed: f.timed + g.timed}
}

func (f *figures) public() Figures {
	return Figures{Views: f.views, Visitors: f.visitors, Visits: f.visits, Bounces: f.bounces, TimeMS: f.timeMS,
		Timed: f.timed}
}

// listsOf are the tops of what was counted.
func listsOf(sums map[key]*figures, limit int) (all []List) {
	for _, l := range lists {
		list := List{Dimension: l.dimension, Title: l.title, Items: []Item{}}
		for k, f := range sums {
			if k.dimension == l.dimension {
				list.Items = append(list.Items, Item{Name: k.name, Figures: f.public().rates(l.dimension)})
			}
		}
		slices.SortFunc(list.Items, func(a, b Item) int {
			return cmp.Or(cmp.Compare(b.Visits, a.Visits), cmp.Compare(b.Views, a.Views), cmp.Compare(a.Name, b.Name))
		})
		list.Others = int64(max(0, len(list.Items)-limit))
		list.Items = list.Items[:min(len(list.Items), limit)]
		for i, item := range list.Items {
			if page := sums[key{dimension: dimPage, name: item.Name}]; l.dimension == dimExit && page != nil {
				list.Items[i].ExitRate = percent(item.Visits, page.views)
			}
		}
		all = append(all, list)
	}
	return all
}

// currentFor is how long after their last view visitors count as being on the site.
const currentFor = 5 * time.Minute

// current counts the visitors of the last minutes; nil where single views are not ours.
func (h *Handler) current(ctx context.Context, site string, zone *time.Location) (*int64, error) {
	if h.Mapped != nil {
		return nil, nil //nolint:nilnil // it is not known
	}
	now := h.Now()
	since := now.Add(-currentFor)
	query := "SELECT COUNT(DISTINCT visitor) FROM cmsjobs_page_views WHERE day IN (?, ?) AND at >= ? AND " +
		"at <= ? AND kind = ?"
	args := []any{since.In(zone).Format(time.DateOnly), now.In(zone).Format(time.DateOnly), since.UnixMilli(),
		now.UnixMilli(), kindView}
	if site != "" {
		query, args = query+" AND site = ?", append(args, site)
	}
	var n int64
	if err := h.DB.GetContext(ctx, &n, h.DB.Rebind(query), args...); err != nil {
		return nil, fmt.Errorf("counting the present visitors: %w", err)
	}
	return &n, nil
}
