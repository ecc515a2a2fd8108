package analytics

import "time"

// visitGap ends a visit: a visitor who comes back later is on a new one.
const visitGap = 30 * time.Minute

// The dimensions that a day is rolled up by. total has one row, named "".
const (
	dimTotal    = "total"
	dimPage     = "page"
	dimEntry    = "entry"
	dimExit     = "exit"
	dimReferrer = "referrer"
	dimDevice   = "device"
	dimBrowser  = "browser"
	dimOS       = "os"
	dimCountry  = "country"
	dimCampaign = "campaign"
	dimBot      = "bot" // what was set apart: "bot", "spam"
)

// key names one row of the daily table of a day.
type key struct{ site, dimension, name string }

// figures are the counts of every row. bounces are visits of one view. timeMS is
// how long visits lasted; of a page, how long it was to the next view in those
// of its views (timed) that had one.
type figures struct{ views, visitors, visits, bounces, timeMS, timed int64 }

// tally counts one day. It is fed visitor by visitor, each in the order of
// time, so that it needs to remember only the present visitor: its memory
// grows with the number of different pages, not of visitors.
type tally struct {
	daily  map[key]*figures
	hourly map[hourKey]*figures

	visitor  [16]byte
	site     string
	started  bool
	first    row // of the present visit
	views    int // of the present visit
	exit     string
	last     int64
	seen     map[key]bool     // by this visitor, today
	seenHour map[hourKey]bool // by this visitor
	inVisit  map[key]bool     // by this visit
}

type hourKey struct {
	site string
	hour int64 // Unix seconds
}

func newTally() *tally {
	return &tally{daily: map[key]*figures{}, hourly: map[hourKey]*figures{}, seen: map[key]bool{},
		seenHour: map[hourKey]bool{}, inVisit: map[key]bool{}}
}

// add counts one view. Rows must come ordered by visitor, then by time.
func (t *tally) add(r *row) {
	if r.kind != kindView {
		f := t.at(key{r.site, dimBot, r.kind})
		f.views++
		return
	}
	newVisitor := !t.started || r.visitor != t.visitor || r.site != t.site
	newVisit := newVisitor || r.at-t.last > visitGap.Milliseconds()
	if newVisit {
		t.endVisit()
	} else {
		page := t.at(key{r.site, dimPage, t.exit})
		page.timeMS, page.timed = page.timeMS+r.at-t.last, page.timed+1
	}
	if newVisitor {
		t.visitor, t.site, t.started = r.visitor, r.site, true
		t.seen = emptied(t.seen)
		t.seenHour = emptied(t.seenHour)
	}
	if newVisit {
		t.first, t.views = *r, 0
		t.inVisit = emptied(t.inVisit)
		t.count(key{r.site, dimEntry, r.path})
	}
	t.views, t.exit, t.last = t.views+1, r.path, r.at
	for _, d := range [...]struct{ dimension, name string }{
		{dimTotal, ""}, {dimPage, r.path}, {dimReferrer, r.referrer}, {dimDevice, r.device}, {dimBrowser, r.browser},
		{dimOS, r.os}, {dimCountry, r.country}, {dimCampaign, r.campaign},
	} {
		if d.name != "" || countsEmpty(d.dimension, newVisit) {
			t.count(key{r.site, d.dimension, d.name})
		}
	}
	t.countHour(r, newVisit)
}

// countsEmpty says whether a view without a value counts in a dimension: none has no
// campaign, and only the first of a visit has no referrer.
func countsEmpty(dimension string, newVisit bool) bool {
	return dimension != dimCampaign && (dimension != dimReferrer || newVisit)
}

// endVisit counts what is known only when a visit has ended: where it left, how
// long it was, and whether it was a bounce. It must follow the last view, too.
func (t *tally) endVisit() {
	if t.views == 0 {
		return
	}
	f := &t.first
	t.count(key{f.site, dimExit, t.exit})
	keys := []key{
		{f.site, dimTotal, ""}, {f.site, dimEntry, f.path}, {f.site, dimReferrer, f.referrer},
		{f.site, dimDevice, f.device},
		{f.site, dimBrowser, f.browser}, {f.site, dimOS, f.os}, {f.site, dimCountry, f.country},
	}
	if f.campaign != "" {
		keys = append(keys, key{f.site, dimCampaign, f.campaign})
	}
	for _, k := range keys {
		counted := t.at(k)
		counted.timeMS += t.last - f.at
		if t.views == 1 {
			counted.bounces++
		}
	}
	t.views = 0
}

// emptied clears a small map and replaces a large one: clearing costs as much
// as the map ever held, and the next visitor is an ordinary one.
func emptied[K comparable](m map[K]bool) map[K]bool {
	if len(m) > 256 {
		return map[K]bool{}
	}
	clear(m)
	return m
}

// count adds a view to a row of the daily table; the visitor and the visit
// count once in it.
func (t *tally) count(k key) {
	f := t.at(k)
	f.views++
	if !t.seen[k] {
		t.seen[k] = true
		f.visitors++
	}
	if !t.inVisit[k] {
		t.inVisit[k] = true
		f.visits++
	}
}

func (t *tally) at(k key) *figures {
	f := t.daily[k]
	if f == nil {
		f = &figures{}
		t.daily[k] = f
	}
	return f
}

// countHour counts a visit in the hour in which it began.
func (t *tally) countHour(r *row, newVisit bool) {
	k := hourKey{r.site, r.at / 1000 / 3600 * 3600}
	f := t.hourly[k]
	if f == nil {
		f = &figures{}
		t.hourly[k] = f
	}
	f.views++
	if !t.seenHour[k] {
		t.seenHour[k] = true
		f.visitors++
	}
	if newVisit {
		f.visits++
	}
}
