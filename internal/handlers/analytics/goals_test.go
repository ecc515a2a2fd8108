package analytics

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func (h *Handler) setGoals(t testing.TB, all ...Goal) {
	t.Helper()
	var err error
	if h.goals, err = newGoals(all); err != nil {
		t.Fatal(err)
	}
}

// plainVisits are the visits of rows, found with a sort and a loop.
func plainVisits(rows []row, since, until, site string) (visits [][]row) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r row) bool {
		return r.kind != kindView && r.kind != kindEvent || r.day < since || r.day > until || r.site != site
	})
	slices.SortFunc(rows, func(a, b row) int {
		return strings.Compare(fmt.Sprintf("%s %x %020d %x", a.day, a.visitor, a.at, a.nonce),
			fmt.Sprintf("%s %x %020d %x", b.day, b.visitor, b.at, b.nonce))
	})
	for i, r := range rows {
		if i == 0 || rows[i-1].day != r.day || rows[i-1].visitor != r.visitor || r.at-rows[i-1].at > 30*60*1000 {
			visits = append(visits, nil)
		}
		visits[len(visits)-1] = append(visits[len(visits)-1], r)
	}
	return visits
}

// plainCount counts visits, and what of them reached the goals Read and Signed up.
func plainCount(visits [][]row) (total Figures, read, signedUp Item) {
	read.Name, signedUp.Name = "Read", "Signed up"
	visitors := map[string]bool{}
	reached := map[string]bool{}
	for _, v := range visits {
		who := fmt.Sprintf("%s %x", v[0].day, v[0].visitor)
		visitors[who] = true
		total.Visits++
		views, times := 0, map[string]int64{}
		for _, r := range v {
			switch {
			case r.event == "Signup":
				times["s"]++
			case r.event == "" && strings.HasPrefix(r.path, "/page-1"):
				times["r"]++
			}
			if r.event == "" {
				views++
			}
		}
		total.Views += int64(views)
		total.TimeMS += v[len(v)-1].at - v[0].at
		if views == 1 && len(v) == 1 {
			total.Bounces++
		}
		for key, item := range map[string]*Item{"r": &read, "s": &signedUp} {
			if times[key] > 0 {
				item.Visits++
				item.Views += times[key]
				if !reached[key+who] {
					reached[key+who] = true
					item.Visitors++
				}
			}
		}
	}
	total.Visitors = int64(len(visitors))
	read.ConversionRate, signedUp.ConversionRate = percent(read.Visitors, total.Visitors), percent(signedUp.Visitors,
		total.Visitors)
	return total.rates(dimTotal), read, signedUp
}

// plainEntries are the visits that began with each page.
func plainEntries(visits [][]row) map[string]int64 {
	entries := map[string]int64{}
	for _, v := range visits {
		for _, r := range v {
			if r.event == "" {
				entries[r.path]++
				break
			}
		}
	}
	return entries
}

func visitsOf(r Report, dimension string) map[string]int64 {
	visits := map[string]int64{}
	for _, l := range r.Lists {
		for _, i := range l.Items {
			if l.Dimension == dimension {
				visits[i.Name] = i.Visits
			}
		}
	}
	return visits
}

func anyRow(visit []row, fits func(row) bool) bool { return slices.ContainsFunc(visit, fits) }

// Whatever filters a report has, its figures and its goals are those of a plain count.
func TestGoalsUnderFiltersAreThoseOfAPlainCount(t *testing.T) {
	signup := func(v []row) bool { return anyRow(v, func(r row) bool { return r.event == "Signup" }) }
	german := func(v []row) bool { return anyRow(v, func(r row) bool { return r.country == "DE" }) }
	google := func(v []row) bool { return anyRow(v, func(r row) bool { return r.referrer == "Google" }) }
	page := func(v []row) bool { return anyRow(v, func(r row) bool { return r.path == "/page-7" }) }
	search := func(v []row) bool { return v[0].campaign == "" && v[0].referrer == "Google" }
	letter := func(v []row) bool { return v[0].campaign == "spring / mail" }
	each(t, func(t *testing.T, h *Handler) {
		ctx := context.Background()
		h.setGoals(t, Goal{Name: "Read", Path: "/page-1*"}, Goal{Name: "Signed up", Event: "Signup"},
			Goal{Name: "Never", Path: "/nowhere"})
		rows := generated(6000, 4, 11)
		for i := range rows { // into the first hours of the day: visits are longer then
			r := &rows[i]
			r.at -= r.at % (24 * 3600 * 1000) / 10 * 9
		}
		if err := write(ctx, h.DB, slices.Clone(rows)); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Process(ctx, ProcessPayload{}); err != nil {
			t.Fatal(err)
		}
		visits := plainVisits(rows, "2026-03-07", "2026-03-09", "a.example")
		for _, x := range []struct {
			filters []Filter
			fits    []func([]row) bool
		}{
			{},
			{[]Filter{{dimGoal, "Signed up"}}, []func([]row) bool{signup}},
			{[]Filter{{dimEvent, "Signup"}, {dimCountry, "DE"}}, []func([]row) bool{signup, german}},
			{[]Filter{{dimCountry, "DE"}, {dimReferrer, "Google"}}, []func([]row) bool{german, google}},
			{[]Filter{{dimPage, "/page-7"}, {dimCountry, "DE"}, {dimGoal, "Signed up"}},
				[]func([]row) bool{page, german, signup}},
			{[]Filter{{dimChannel, "search"}, {dimGoal, "Signed up"}}, []func([]row) bool{search, signup}},
			{[]Filter{{dimChannel, "mail"}}, []func([]row) bool{letter}},
		} {
			selected := slices.DeleteFunc(slices.Clone(visits), func(v []row) bool {
				return slices.ContainsFunc(x.fits, func(f func([]row) bool) bool { return !f(v) })
			})
			r, err := h.Report(ctx, ReportQuery{Since: "2026-03-07", Until: "2026-03-09", Site: "a.example",
				Filters: x.filters, Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			total, read, signedUp := plainCount(selected)
			got := r.Total
			got.Timed = 0
			if got != total || total.Visits == 0 {
				t.Errorf("%v: %+v, a plain count says %+v", x.filters, got, total)
			}
			if entries := plainEntries(selected); !maps.Equal(entries, visitsOf(r, dimEntry)) ||
				len(entries) == 0 {
				t.Errorf("%v: entries %v, a plain count says %v", x.filters, visitsOf(r, dimEntry), entries)
			}
			for _, want := range []Item{read, signedUp, {Name: "Never"}} {
				if own := ownItem(r, Filter{dimGoal, want.Name}); own != want {
					t.Errorf("%v: %+v, a plain count says %+v", x.filters, own, want)
				}
			}
		}
		_, err := h.Report(ctx, ReportQuery{Since: "2026-03-07", Until: "2026-03-09", Filters: []Filter{{dimGoal, "Sale"}}})
		if !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("a goal that there is not: %v", err)
		}
		many := make([]Filter, maxFilters+1)
		_, err = h.Report(ctx, ReportQuery{Since: "2026-03-07", Until: "2026-03-09", Filters: many})
		if !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("%d filters: %v", len(many), err)
		}
	})
}

// A filtered report reads two million views, the days before among them, and no more.
func TestAFilteredReportReadsTwoMillionViews(t *testing.T) {
	h := bench(t, jobstest.SQLite)
	ctx := context.Background()
	if err := write(ctx, h.DB, generated(100, 1, 3)); err != nil {
		t.Fatal(err)
	}
	q := ReportQuery{Since: "2026-03-09", Until: "2026-03-09", Filters: []Filter{{dimCountry, "DE"}}}
	filters, err := h.selectors(q.Filters)
	if err != nil {
		t.Fatal(err)
	}
	days, seen, err := h.selected(ctx, q, filters, 2_000_000-100)
	if err != nil || seen != 2_000_000 || days["2026-03-09"].total().Visits == 0 {
		t.Errorf("the last view of two million: %d, %v", seen, err)
	}
	if _, _, err := h.selected(ctx, q, filters, 2_000_000-99); !errors.Is(err, jobs.ErrInvalid) ||
		!strings.Contains(err.Error(), "shorter period") {
		t.Errorf("one view more: %v", err)
	}
}

// When the goals change, days are counted again, as long as their single views are there.
func TestDaysAreCountedAgainWhenGoalsChange(t *testing.T) {
	each(t, func(t *testing.T, h *Handler) {
		ctx := context.Background()
		process := func() Processed {
			t.Helper()
			done, err := h.Process(ctx, ProcessPayload{})
			if err != nil {
				t.Fatal(err)
			}
			return done
		}
		rows := generated(2000, 4, 8) // 2026-03-06 to 2026-03-09
		if err := write(ctx, h.DB, slices.Clone(rows)); err != nil {
			t.Fatal(err)
		}
		if done := process(); done.Days != 4 {
			t.Errorf("%+v", done)
		}
		h.KeepRaw = 3 * 24 * time.Hour // the clock says 2026-03-10: the 6th is closed
		process()
		h.setGoals(t, Goal{Name: "Signed up", Event: "Signup"})
		if done := process(); done.Days != 3 {
			t.Errorf("%d days of three are counted again", done.Days)
		}
		if done := process(); done.Days != 0 {
			t.Errorf("%d days are counted once more", done.Days)
		}
		_, _, want := plainCount(plainVisits(rows, "2026-03-07", "2026-03-09", "a.example"))
		r, err := h.Report(ctx, ReportQuery{Since: "2026-03-06", Until: "2026-03-09", Site: "a.example"})
		if err != nil {
			t.Fatal(err)
		}
		if own := ownItem(r, Filter{dimGoal, "Signed up"}); own.Views != want.Views || own.Visitors != want.Visitors {
			t.Errorf("%+v, a plain count says %+v", own, want)
		}
		h.setGoals(t)
		process()
		if r, err = h.Report(ctx, ReportQuery{Since: "2026-03-06", Until: "2026-03-09"}); err != nil {
			t.Fatal(err)
		}
		for _, l := range r.Lists {
			if l.Dimension == dimGoal && len(l.Items) > 0 {
				t.Errorf("a goal that is no more: %+v", l.Items)
			}
		}
	})
}

// A log that is imported reaches the goals of pages, whatever stands behind the path.
func TestAnAccessLogReachesGoals(t *testing.T) {
	h := bench(t, jobstest.SQLite)
	h.setGoals(t, Goal{Name: "Order", Path: "/order/*/thanks"})
	ctx := context.Background()
	var log strings.Builder
	for i, path := range []string{"/order/7/thanks?id=3", "/order/8/thanks/", "/order/thanks", "/"} {
		fmt.Fprintf(&log, "203.0.113.%d - - [09/Mar/2026:10:00:00 +0000] \"GET %s HTTP/1.1\" 200 1 \"-\" \"%s\"\n", i+1, path,
			firefox)
	}
	if _, err := h.Import(ctx, Log{Name: "access.log", Host: "example.com"}, strings.NewReader(log.String()),
		nil); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Process(ctx, ProcessPayload{}); err != nil {
		t.Fatal(err)
	}
	r, err := h.Report(ctx, ReportQuery{Since: "2026-03-09", Until: "2026-03-09"})
	if err != nil {
		t.Fatal(err)
	}
	want := Item{Name: "Order", Figures: Figures{Views: 2, Visitors: 2, Visits: 2, ConversionRate: 50}}
	if own := ownItem(r, Filter{dimGoal, "Order"}); own != want {
		t.Errorf("%+v, not %+v", own, want)
	}
}

// Events come by the script's route and by the server's, and count as no view.
func TestEventsAreCollected(t *testing.T) {
	each(t, func(t *testing.T, h *Handler) {
		ctx := context.Background()
		h.RespectDoNotTrack = true
		h.setGoals(t, Goal{Name: "Signed up", Event: "Signup"})
		c := h.NewCollector()
		bot := func(r *http.Request) { r.Header.Set("User-Agent", "Googlebot/2.1 (+http://www.google.com/bot.html)") }
		event := func(name string) string {
			body, err := json.Marshal(map[string]string{"u": "https://example.com/a", "n": name})
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
		for _, x := range []struct {
			body   string
			change func(*http.Request)
			want   int
		}{
			{`{"u":"https://example.com/a"}`, nil, 204},
			{event("Signup"), nil, 204},
			{event(" Signup "), nil, 204},
			{event("Đăng ký"), nil, 204},
			{event("Signup"), bot, 204},
			{event("Signup"), func(r *http.Request) { r.Header.Set("DNT", "1") }, 204},
			{event(strings.Repeat("é", 64)), nil, 204},
			{event(strings.Repeat("é", 65)), nil, 400},
			{event("\x01\x02"), nil, 400},
			{event("   "), nil, 400},
			{`{"u":"https://example.com/a","n":7}`, nil, 400},
			{`{"u":"https://evil.example/a","n":"Signup"}`, nil, 403},
		} {
			if got := send(c, x.body, x.change); got != x.want {
				t.Errorf("%s: %d, want %d", x.body, got, x.want)
			}
		}
		if err := c.last(nil); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Process(ctx, ProcessPayload{}); err != nil {
			t.Fatal(err)
		}
		r, err := h.Report(ctx, ReportQuery{Since: "2026-03-10", Until: "2026-03-10"})
		if err != nil {
			t.Fatal(err)
		}
		if r.Total.Views != 1 || r.Total.Visits != 1 || r.Total.Visitors != 1 || r.Total.Bounces != 0 ||
			r.Excluded.Views != 0 {
			t.Errorf("%+v, %+v excluded", r.Total, r.Excluded)
		}
		want := Item{Name: "Signed up", Figures: Figures{Views: 2, Visitors: 1, Visits: 1, ConversionRate: 100}}
		if own := ownItem(r, Filter{dimGoal, "Signed up"}); own != want {
			t.Errorf("%+v, not %+v", own, want)
		}
		for _, name := range []string{"Đăng ký", strings.Repeat("é", 64)} {
			if own := ownItem(r, Filter{dimEvent, name}); own.Views != 1 {
				t.Errorf("%s: %+v", name, own)
			}
		}
	})
}

// A day has so many names of events, also after a restart; goals and views are not among
// them, and what is too much is counted as dropped.
func TestEventsOfADayHaveSoManyNames(t *testing.T) {
	each(t, func(t *testing.T, h *Handler) {
		h.PerAddress = 1e6
		h.setGoals(t, Goal{Name: "Signed up", Event: "Signup"})
		sendAll := func(h *Handler, bodies ...string) Counts {
			t.Helper()
			c := h.NewCollector()
			for _, body := range bodies {
				if code := send(c, body, nil); code != 204 {
					t.Fatalf("%s: %d", body, code)
				}
			}
			if err := c.last(nil); err != nil {
				t.Fatal(err)
			}
			return c.Counts()
		}
		var bodies []string
		for i := range 110 {
			bodies = append(bodies, fmt.Sprintf(`{"u":"https://example.com/a","n":"junk %d"}`, i))
		}
		bodies = append(bodies, `{"u":"https://example.com/a","n":"Signup"}`, `{"u":"https://example.com/a"}`,
			`{"u":"https://example.com/a","n":"junk 5"}`)
		if got := sendAll(h, bodies...); got != (Counts{Accepted: 113, Stored: 103, Dropped: 10}) {
			t.Errorf("%+v", got)
		}
		again, err := New(h.Config) // another process
		if err != nil {
			t.Fatal(err)
		}
		again.goals = h.goals
		if got := sendAll(again, `{"u":"https://example.com/a","n":"more"}`, bodies[3], bodies[110]); got != (Counts{
			Accepted: 3, Stored: 2, Dropped: 1}) {
			t.Errorf("after a restart %+v", got)
		}
	})
}

// One address sends so many events and views together.
func TestEventsAreLimitedAsViewsAre(t *testing.T) {
	h := bench(t, jobstest.SQLite) // the clock stands: no token comes back
	c := h.NewCollector()
	codes := map[int]int{}
	for i := range 80 {
		body := `{"u":"https://example.com/a","n":"Signup"}`
		if i%2 == 0 {
			body = `{"u":"https://example.com/a"}`
		}
		codes[send(c, body, nil)]++
	}
	if codes[204] != 50 || codes[429] != 30 {
		t.Errorf("%v, want 50 taken and 30 refused", codes)
	}
}

// The hours of a day add up to it, in zones of half hours and on days of 23 and 25 hours.
func TestADayHasItsHours(t *testing.T) {
	for _, x := range []struct {
		zone, day string
		hours     int
		first     string
	}{
		{"Asia/Ho_Chi_Minh", "2026-03-09", 24, "2026-03-09T00:00:00+07:00"},
		{"Asia/Kolkata", "2026-03-09", 24, "2026-03-09T00:00:00+05:30"},
		{"Europe/Berlin", "2026-03-29", 23, "2026-03-29T00:00:00+01:00"},
		{"Europe/Berlin", "2026-10-25", 25, "2026-10-25T00:00:00+02:00"},
	} {
		zone, err := time.LoadLocation(x.zone)
		if err != nil {
			t.Fatal(err)
		}
		first, err := time.ParseInLocation(time.DateOnly, x.day, zone)
		if err != nil {
			t.Fatal(err)
		}
		h := bench(t, jobstest.SQLite)
		h.Site = &cms.Site{DB: h.DB, Env: cms.Env{"APP_URL": "https://example.com"}, FallbackZone: zone}
		var rows []row
		for i := range 600 { // a view every two minutes and some, each by another visitor
			at := first.Add(time.Duration(i) * 137 * time.Second)
			v := row{day: at.Format(time.DateOnly), at: at.UnixMilli(), nonce: randomNonce(), site: "example.com", path: "/",
				kind: kindView, country: []string{"DE", "VN"}[i%2]}
			v.visitor[0], v.visitor[1] = byte(i>>8), byte(i)
			rows = append(rows, v)
		}
		ctx := context.Background()
		if err := write(ctx, h.DB, slices.Clone(rows)); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Process(ctx, ProcessPayload{}); err != nil {
			t.Fatal(err)
		}
		for _, filters := range [][]Filter{nil, {{dimCountry, "DE"}}} {
			r, err := h.Report(ctx, ReportQuery{Since: x.day, Until: x.day, Filters: filters})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]int64{}
			for _, v := range rows {
				if v.day == x.day && (filters == nil || v.country == "DE") {
					want[time.UnixMilli(v.at).In(zone).Format("2006-01-02T15:00:00Z07:00")]++
				}
			}
			if len(r.Hours) != x.hours || r.Hours[0].Hour != x.first {
				t.Errorf("%s has %d hours from %s", x.day, len(r.Hours), r.Hours[0].Hour)
			}
			for _, hour := range r.Hours {
				if n := want[hour.Hour]; hour.Views != n || hour.Visits != n || hour.Bounces != n || hour.Visitors != n {
					t.Errorf("%v %s: %+v, a plain count says %d", filters, hour.Hour, hour.Figures, n)
				}
			}
		}
		longer, err := h.Report(ctx, ReportQuery{Since: "2026-03-01", Until: x.day})
		if err != nil || longer.Hours != nil {
			t.Errorf("hours of many days: %v, %v", longer.Hours, err)
		}
	}
}

// The channel is that of the campaign's medium, else of the source.
func TestChannels(t *testing.T) {
	for want, rows := range map[string][]row{
		channelDirect: {{}}, channelSearch: {{referrer: "Google"}, {referrer: "Cốc Cốc"}},
		channelSocial:   {{referrer: "Zalo"}, {referrer: "x", campaign: "facebook / social / autumn"}},
		channelMail:     {{referrer: "Mail"}, {campaign: "newsletter / email"}},
		channelReferral: {{referrer: "news.example"}, {referrer: "Wikipedia"}},
		channelCampaign: {{campaign: "letter"}, {campaign: "google / cpc / a", referrer: "Google"}},
	} {
		for _, r := range rows {
			if got := channelOf(&r); got != want {
				t.Errorf("%+v came by %s, not %s", r, got, want)
			}
		}
	}
}

func TestGoalsThatAreNoneAreRefused(t *testing.T) {
	for _, all := range [][]Goal{{{Name: "a"}}, {{Path: "/a"}}, {{Name: "a", Path: "/a", Event: "b"}},
		{{Name: "a", Path: "/a"}, {Name: "a", Event: "b"}}} {
		if _, err := newGoals(all); err == nil {
			t.Errorf("%v were taken", all)
		}
	}
}

// FuzzGoal compares the paths of goals with regular expressions.
func FuzzGoal(f *testing.F) {
	for _, x := range [][2]string{{"/order/*/thanks", "/order/7/thanks"}, {"/a*a", "/a"}, {"/*", "/"}, {"/a**b*", "/ab"},
		{"/ab*bc*c", "/abbcc"}} {
		f.Add(x[0], x[1])
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		if pattern = cleanPath(pattern); pattern == "" {
			return
		}
		path = cleanPath(path)
		all, err := newGoals([]Goal{{Name: "a", Path: pattern}})
		if err != nil {
			t.Fatal(err)
		}
		expression := "(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(cleanPath(pattern)), `\*`, ".*") + "$"
		want := regexp.MustCompile(expression).MatchString(path)
		if got := all[0].reachedBy(&row{path: path, kind: kindView}); got != want {
			t.Errorf("%q and %q: %v, a regular expression says %v", pattern, path, got, want)
		}
	})
}

// FuzzCollect posts anything: it is refused, or becomes rows that the table takes.
func FuzzCollect(f *testing.F) {
	f.Add([]byte(`{"u":"https://example.com/a?utm_term=b","r":"https://t.co/x","n":"Signup"}`))
	f.Add([]byte(`{"u":"https://example.com/%00","n":"\u0000 \ud800"}`))
	h := bench(f, jobstest.SQLite)
	h.PerAddress = 1e9
	f.Fuzz(func(t *testing.T, body []byte) {
		c := h.NewCollector()
		code := send(c, string(body), nil)
		if code != 204 {
			if code < 400 || code >= 500 || len(c.views) != 0 {
				t.Errorf("%q: %d", body, code)
			}
			return
		}
		v := <-c.views
		r, err := h.row(context.Background(), v, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		for name, max := range map[string]struct {
			text  string
			limit int
		}{"event": {r.event, 64}, "term": {r.term, 191}, "content": {r.content, 191}, "path": {r.path, 500}} {
			if !utf8.ValidString(max.text) || utf8.RuneCountInString(max.text) > max.limit ||
				strings.ContainsFunc(max.text, func(r rune) bool { return r < ' ' }) {
				t.Errorf("%q: %s is %q", body, name, max.text)
			}
		}
		if (r.event == "") != (v.Event == "") || bytes.Contains([]byte(r.event), []byte("203.0.113")) && !bytes.Contains(
			body, []byte("203.0.113")) {
			t.Errorf("%q: the event %q", body, r.event)
		}
	})
}
