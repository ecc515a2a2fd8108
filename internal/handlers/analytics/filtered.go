package analytics

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// maxFilteredViews bounds what one filtered report reads.
const maxFilteredViews = 2_000_000

// filtered makes the report of selected visits. It reads single views: of days whose views were
// deleted there is nothing.
func (h *Handler) filtered(ctx context.Context, q ReportQuery, before ReportQuery, r *Report) (err error) {
	filters, err := h.selectors(q.Filters)
	if err != nil {
		return err
	}
	if r.All, err = h.sum(ctx, q, dimTotal); err != nil {
		return err
	}
	past, seen, err := h.selected(ctx, before, filters, 0)
	if err != nil {
		return err
	}
	for _, day := range past {
		r.Previous = r.Previous.plus(day.total())
	}
	r.Previous = r.Previous.rates(dimTotal)
	days, _, err := h.selected(ctx, q, filters, seen)
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
		t.addHours(r.Hours)
		for k, f := range t.daily {
			k.site = ""
			if sums[k] == nil {
				sums[k] = &figures{}
			}
			sums[k].plus(f)
		}
	}
	r.Total = r.Total.rates(dimTotal)
	r.Lists = h.withGoals(listsOf(sums, q.Limit), r.Total.Visitors)
	deleted := h.DB.Rebind("SELECT COUNT(*) FROM cmsjobs_analytics_days WHERE day BETWEEN ? AND ? AND version < 0")
	if err := h.DB.GetContext(ctx, &r.Deleted, deleted, q.Since, q.Until); err != nil {
		return fmt.Errorf("counting the days without single views: %w", err)
	}
	return nil
}

func (h *Handler) selectors(filters []Filter) ([]selector, error) {
	if len(filters) > maxFilters {
		return nil, jobs.Invalid(fmt.Errorf("a report may have %d filters at most", maxFilters))
	}
	all := make([]selector, len(filters))
	for i, f := range filters {
		var err error
		if all[i], err = h.selector(f); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// selected counts the selected visits of each day; seen views were read before.
func (h *Handler) selected(ctx context.Context, q ReportQuery, filters []selector, seen int64) (map[string]*tally,
	int64, error) {
	days, err := h.due(ctx, ProcessPayload{DateRange: &DateRange{q.Since, q.Until}})
	if err != nil {
		return nil, 0, err
	}
	zone, err := h.Site.Zone(ctx)
	if err != nil {
		return nil, 0, err
	}
	found := map[string]*tally{}
	for _, day := range days {
		v := visitFilter{filters: filters, site: q.Site, to: newTally(h.goals, zone), seen: seen}
		if _, err := h.read(ctx, day, &v); err != nil {
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
		if l.dimension != dimGoal { // those are as many as the configuration has
			list.Others = int64(max(0, len(list.Items)-limit))
			list.Items = list.Items[:min(len(list.Items), limit)]
		}
		for i, item := range list.Items {
			if page := sums[key{dimension: dimPage, name: item.Name}]; l.dimension == dimExit && page != nil {
				list.Items[i].ExitRate = percent(item.Visits, page.views)
			}
		}
		all = append(all, list)
	}
	return all
}
