package analytics

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Filter selects visits: those with a view of this value, for example of this page or from this
// source. Of the dimension entry it selects visits that began with the page, of exit visits that
// ended with it, of goal those that reached it. Several filters select the visits that fit all.
type Filter struct {
	Dimension string `json:"dimension"`
	Name      string `json:"name"`
}

// maxFilters bounds what one report compares each visit with.
const maxFilters = 20

// ParseFilter reads a filter as people write it: page:/news. Nothing after the colon is the
// empty value: referrer: selects direct visits.
func ParseFilter(text string) (Filter, error) {
	dimension, name, found := strings.Cut(text, ":")
	if !found || !listed(dimension) {
		known := make([]string, len(lists))
		for i, l := range lists {
			known[i] = l.dimension
		}
		return Filter{}, fmt.Errorf("%q is no filter: write page:/news; page may be one of %s", text,
			strings.Join(known, ", "))
	}
	return Filter{dimension, name}, nil
}

func listed(dimension string) bool {
	return slices.ContainsFunc(lists[:], func(l struct{ dimension, title string }) bool {
		return l.dimension == dimension
	})
}

// selector says whether a visit, which has a row at least, is selected.
type selector func(visit []row) bool

// selector agrees with the tally: the visits that it counts for a value are those that the value
// selects.
func (h *Handler) selector(f Filter) (selector, error) {
	has := func(fits func(r *row) bool) selector {
		return func(visit []row) bool {
			return slices.ContainsFunc(visit, func(r row) bool { return fits(&r) })
		}
	}
	switch f.Dimension {
	case dimEntry:
		return func(visit []row) bool {
			i := slices.IndexFunc(visit, isView)
			return i >= 0 && visit[i].path == f.Name
		}, nil
	case dimExit:
		return func(visit []row) bool {
			for i := len(visit) - 1; i >= 0; i-- {
				if isView(visit[i]) {
					return visit[i].path == f.Name
				}
			}
			return false
		}, nil
	case dimChannel:
		return func(visit []row) bool { return channelOf(&visit[0]) == f.Name }, nil
	case dimReferrer:
		if f.Name == "" {
			return func(visit []row) bool { return visit[0].referrer == "" }, nil
		}
	case dimGoal:
		g := h.goals.named(f.Name)
		if g == nil {
			return nil, jobs.Invalid(fmt.Errorf("there is no goal %q (analytics.goals)", f.Name))
		}
		return has(g.reachedBy), nil
	}
	of := fieldOf(f.Dimension)
	if of == nil {
		return nil, jobs.Invalid(fmt.Errorf("visits cannot be filtered by %q", f.Dimension))
	}
	if f.Name == "" && !countsEmpty(f.Dimension, true) {
		return nil, jobs.Invalid(fmt.Errorf("a filter by %s needs a value", f.Dimension))
	}
	return has(func(r *row) bool { return *of(r) == f.Name }), nil
}

func isView(r row) bool { return r.event == "" }

// fieldOf is the field of a row that a dimension counts; nil where it is none.
func fieldOf(dimension string) func(r *row) *string {
	switch dimension {
	case dimPage:
		return func(r *row) *string { return &r.path }
	case dimReferrer:
		return func(r *row) *string { return &r.referrer }
	case dimCountry:
		return func(r *row) *string { return &r.country }
	case dimDevice:
		return func(r *row) *string { return &r.device }
	case dimBrowser:
		return func(r *row) *string { return &r.browser }
	case dimOS:
		return func(r *row) *string { return &r.os }
	case dimCampaign:
		return func(r *row) *string { return &r.campaign }
	case dimTerm:
		return func(r *row) *string { return &r.term }
	case dimContent:
		return func(r *row) *string { return &r.content }
	case dimEvent:
		return func(r *row) *string { return &r.event }
	}
	return nil
}

// viewSink takes the views of a day, visitor by visitor, each in the order of time.
type viewSink interface{ add(r *row) }

// visitFilter passes the views of the selected visits on.
type visitFilter struct {
	filters []selector
	site    string // "" means all
	to      *tally
	rows    []row // of the present visit
	seen    int64 // views that were read
}

func (v *visitFilter) add(r *row) {
	v.seen++
	if r.kind != kindView && r.kind != kindEvent || v.site != "" && r.site != v.site || v.seen > maxFilteredViews {
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
	if len(v.rows) > 0 && v.selected() {
		for i := range v.rows {
			v.to.add(&v.rows[i])
		}
	}
	v.rows = v.rows[:0]
}

func (v *visitFilter) selected() bool {
	for _, selects := range v.filters {
		if !selects(v.rows) {
			return false
		}
	}
	return true
}
