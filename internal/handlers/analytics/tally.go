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
	dimOS       = "system"
	dimCountry  = "country"
	dimChannel  = "channel"
	dimCampaign = "campaign"
	dimTerm     = "term"    // utm_term
	dimContent  = "content" // utm_content
	dimGoal     = "goal"
	dimEvent    = "event"
	dimBot      = "bot" // what was set apart: "bot", "spam"
)

// key names one row of the daily table of a day.
type key struct{ site, dimension, name string }

// figures are the counts of every row. bounces are visits of one view and no event.
// timeMS is how long visits lasted; of a page, how long it was to the next view in
// those of its views (timed) that had one. The views of a goal are how often it was
// reached.
type figures struct{ views, visitors, visits, bounces, timeMS, timed int64 }

// tally counts one day. It is fed visitor by visitor, each in the order of
// time, so that it needs to remember only the present visitor: its memory
// grows with the number of different pages, not of visitors.
//
// An event is part of a visit as a view is, and begins one where there is none; only
// it is no view.
type tally struct {
	goals  goals
	zone   *time.Location
	daily  map[key]*figures
	hourly map[hourKey]*figures

	visitor  [16]byte
	site     string
	started  bool
	first    row // of the present visit, as what follows
	channel  string
	views    int
	events   int
	entry    string           // the page of the first view
	exit     string           // that of the last one
	viewed   int64            // when that was
	last     int64            // when the last view or event was
	seen     map[key]bool     // by this visitor, today
	seenHour map[hourKey]bool // by this visitor
	inVisit  map[key]bool     // by this visit
}

type hourKey struct {
	site string
	hour int64 // Unix seconds
}

func newTally(g goals, zone *time.Location) *tally {
	return &tally{goals: g, zone: zone, daily: map[key]*figures{}, hourly: map[hourKey]*figures{}, seen: map[key]bool{},
		seenHour: map[hourKey]bool{}, inVisit: map[key]bool{}}
}

// add counts one view or event. Rows must come ordered by visitor, then by time.
func (t *tally) add(r *row) {
	if r.kind != kindView && r.kind != kindEvent {
		if r.event == "" {
			t.at(key{r.site, dimBot, r.kind}).views++
		}
		return
	}
	newVisitor := !t.started || r.visitor != t.visitor || r.site != t.site
	newVisit := newVisitor || r.at-t.last > visitGap.Milliseconds()
	if newVisit {
		t.endVisit()
	}
	if newVisitor {
		t.visitor, t.site, t.started = r.visitor, r.site, true
		t.seen = emptied(t.seen)
		t.seenHour = emptied(t.seenHour)
	}
	if newVisit {
		t.beginVisit(r)
	}
	views := int64(1)
	if r.event == "" {
		t.view(r)
	} else {
		views, t.events = 0, t.events+1
		t.count(key{r.site, dimEvent, r.event}, 1)
	}
	t.last = r.at
	t.countRow(r, views, newVisit)
}

// countRow adds a view or event to the figures of all that it has.
func (t *tally) countRow(r *row, views int64, newVisit bool) {
	for _, d := range [...]struct{ dimension, name string }{
		{dimTotal, ""}, {dimPage, r.path}, {dimReferrer, r.referrer}, {dimDevice, r.device}, {dimBrowser, r.browser},
		{dimOS, r.os}, {dimCountry, r.country}, {dimChannel, t.channel}, {dimCampaign, r.campaign}, {dimTerm, r.term},
		{dimContent, r.content},
	} {
		if d.name != "" || countsEmpty(d.dimension, newVisit) {
			t.count(key{r.site, d.dimension, d.name}, views)
		}
	}
	for i := range t.goals {
		if t.goals[i].reachedBy(r) {
			t.count(key{r.site, dimGoal, t.goals[i].Name}, 1)
		}
	}
	t.countHour(r, views, newVisit)
}

func (t *tally) beginVisit(r *row) {
	t.first, t.channel, t.views, t.events = *r, channelOf(r), 0, 0
	t.inVisit = emptied(t.inVisit)
}

// view ends the time that the page before was looked at.
func (t *tally) view(r *row) {
	if t.views == 0 {
		t.entry = r.path
		t.count(key{r.site, dimEntry, r.path}, 1)
	} else {
		page := t.at(key{r.site, dimPage, t.exit})
		page.timeMS, page.timed = page.timeMS+r.at-t.viewed, page.timed+1
	}
	t.views, t.exit, t.viewed = t.views+1, r.path, r.at
}

// countsEmpty says whether a view without a value counts in a dimension: none has no
// campaign, and only the first of a visit has no referrer.
func countsEmpty(dimension string, newVisit bool) bool {
	switch dimension {
	case dimCampaign, dimTerm, dimContent:
		return false
	case dimReferrer:
		return newVisit
	}
	return true
}

// endVisit counts what is known only when a visit has ended: where it left, how
// long it was, and whether it was a bounce. It must follow the last view, too.
func (t *tally) endVisit() {
	if t.views+t.events == 0 {
		return
	}
	f := &t.first
	keys := []key{
		{f.site, dimTotal, ""}, {f.site, dimReferrer, f.referrer},
		{f.site, dimDevice, f.device},
		{f.site, dimBrowser, f.browser}, {f.site, dimOS, f.os}, {f.site, dimCountry, f.country},
		{f.site, dimChannel, t.channel},
	}
	if t.views > 0 { // no page is the entry of events alone
		t.count(key{f.site, dimExit, t.exit}, 1)
		keys = append(keys, key{f.site, dimEntry, t.entry})
	}
	for _, k := range []key{{f.site, dimCampaign, f.campaign}, {f.site, dimTerm, f.term},
		{f.site, dimContent, f.content}} {
		if k.name != "" {
			keys = append(keys, k)
		}
	}
	_, hour := t.hour(f)
	counted := []*figures{hour}
	for _, k := range keys {
		counted = append(counted, t.at(k))
	}
	for _, c := range counted {
		c.timeMS += t.last - f.at
		if t.views == 1 && t.events == 0 {
			c.bounces++
		}
	}
	t.views, t.events = 0, 0
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

// count adds views to a row of the daily table; the visitor and the visit
// count once in it.
func (t *tally) count(k key, views int64) {
	f := t.at(k)
	f.views += views
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

// hour is the row of the clock's hour in which a view was. Its first moment is no
// whole hour of UTC in every zone.
func (t *tally) hour(r *row) (hourKey, *figures) {
	at := r.at / 1000
	_, offset := time.Unix(at, 0).In(t.zone).Zone()
	k := hourKey{r.site, at - (at+int64(offset))%3600}
	f := t.hourly[k]
	if f == nil {
		f = &figures{}
		t.hourly[k] = f
	}
	return k, f
}

// countHour counts a visit in the hour in which it began.
func (t *tally) countHour(r *row, views int64, newVisit bool) {
	k, f := t.hour(r)
	f.views += views
	if !t.seenHour[k] {
		t.seenHour[k] = true
		f.visitors++
	}
	if newVisit {
		f.visits++
	}
}
