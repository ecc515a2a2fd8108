package analytics

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// bench returns a handler on its own database, with a clock that stands.
func bench(t testing.TB, engine jobstest.Engine) *Handler {
	t.Helper()
	db := jobstest.Migrated(t, engine)
	h, err := New(Config{Site: &cms.Site{DB: db.DB, Env: cms.Env{"APP_URL": "https://example.com"}}, DB: db.DB,
		Now: func() time.Time { return time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC) }})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// generated makes n views of two sites over the days before the clock's now,
// with few visitors who come often, so that visits begin and end.
func generated(n, days int, seed uint64) []row {
	r := rand.New(rand.NewPCG(seed, 1))
	end := time.Date(2026, 3, 10, 0, 0, 0, 0, time.UTC)
	rows := make([]row, n)
	for i := range rows {
		at := end.Add(-time.Duration(r.Int64N(int64(days) * int64(24*time.Hour))))
		x := row{day: at.Format(time.DateOnly), at: at.UnixMilli(), site: []string{"a.example", "b.example"}[r.IntN(2)],
			path: fmt.Sprintf("/page-%d", r.IntN(40)), device: []string{"desktop", "mobile", ""}[r.IntN(3)],
			browser: []string{"Chrome", "Firefox", "Safari"}[r.IntN(3)], os: []string{"Windows", "Android"}[r.IntN(2)],
			country: []string{"VN", "DE", ""}[r.IntN(3)], kind: kindView}
		if r.IntN(3) == 0 {
			x.referrer = []string{"Google", "news.example"}[r.IntN(2)]
		}
		if r.IntN(10) == 0 {
			x.campaign = "spring / mail"
		}
		if r.IntN(8) == 0 {
			x.kind, x.event = kindEvent, []string{"Signup", "Download"}[r.IntN(2)]
		}
		if r.IntN(9) == 0 {
			x.term, x.content = []string{"shoes", ""}[r.IntN(2)], []string{"banner", ""}[r.IntN(2)]
		}
		if r.IntN(20) == 0 {
			x.kind = []string{kindBot, kindSpam}[r.IntN(2)]
		}
		x.visitor = visitor([]byte(x.day), x.site, fmt.Sprint(r.IntN(n/20+1)), "")
		x.nonce = randomNonce()
		rows[i] = x
	}
	return rows
}

func (h *Handler) dump(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, q := range []string{
		"SELECT day, site, dimension, name, views, visitors, visits FROM cmsjobs_analytics_daily",
		"SELECT day, site, 'hour', hour, views, visitors, visits FROM cmsjobs_analytics_hourly",
	} {
		rows, err := h.DB.Query(q)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var day, site, dimension, name string
			var a, b, c int64
			if err := rows.Scan(&day, &site, &dimension, &name, &a, &b, &c); err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprint(day, "|", site, "|", dimension, "|", name, "|", a, "|", b, "|", c))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(all)
	return all
}

func each(t *testing.T, test func(t *testing.T, h *Handler)) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) { test(t, bench(t, engine)) })
	}
}

func TestARollUpEqualsAPlainSQLCount(t *testing.T) {
	each(t, func(t *testing.T, h *Handler) {
		ctx := context.Background()
		if err := write(ctx, h.DB, generated(6000, 3, 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Process(ctx, ProcessPayload{}); err != nil {
			t.Fatal(err)
		}
		const views = "SUM(CASE WHEN event = '' THEN 1 ELSE 0 END)"
		for dimension, column := range map[string]string{dimTotal: "SUBSTR(kind, 9)", dimPage: "path",
			dimDevice: "device", dimBrowser: "browser", dimOS: "os", dimCountry: "country"} {
			compare(t, h, dimension, "SELECT day, site, "+column+", "+views+", COUNT(DISTINCT visitor) FROM "+
				"cmsjobs_page_views WHERE kind IN ('view', 'event') GROUP BY day, site, "+column)
		}
		for _, column := range []string{dimCampaign, dimTerm, dimContent} {
			compare(t, h, column, "SELECT day, site, "+column+", "+views+", COUNT(DISTINCT visitor) FROM "+
				"cmsjobs_page_views WHERE kind IN ('view', 'event') AND "+column+" <> '' GROUP BY day, site, "+column)
		}
		compare(t, h, dimEvent, "SELECT day, site, event, COUNT(*), COUNT(DISTINCT visitor) FROM "+
			"cmsjobs_page_views WHERE kind = 'event' GROUP BY day, site, event")
		// A visit begins where no view or event of the visitor lies in the half hour before.
		begun := `SELECT v.day, v.site, v.path, v.referrer, v.visitor, v.event FROM cmsjobs_page_views v
			WHERE v.kind IN ('view', 'event') AND NOT EXISTS (
			SELECT 1 FROM cmsjobs_page_views e WHERE e.kind IN ('view', 'event') AND e.day = v.day AND e.visitor = v.visitor AND
			e.site = v.site
			AND (e.at < v.at OR e.at = v.at AND e.nonce < v.nonce) AND e.at >= v.at - 1800000)`
		compare(t, h, dimReferrer, "SELECT day, site, referrer, "+views+", COUNT(DISTINCT visitor) FROM (SELECT day, "+
			"site, referrer, visitor, event FROM ("+begun+
			") b WHERE referrer = '' UNION ALL SELECT day, site, referrer, visitor, event FROM cmsjobs_page_views WHERE "+
			"kind IN ('view', 'event') AND referrer <> '') u GROUP BY day, site, referrer")
		var visits, want int64
		if err := h.DB.Get(&visits,
			"SELECT SUM(visits) FROM cmsjobs_analytics_daily WHERE dimension = 'total'"); err != nil {
			t.Fatal(err)
		}
		if err := h.DB.Get(&want, "SELECT COUNT(*) FROM ("+begun+") b"); err != nil {
			t.Fatal(err)
		}
		if visits != want || want == 0 {
			t.Errorf("%d visits, a plain count says %d", visits, want)
		}
	})
}

// compare holds a dimension's rows against those of an independent query.
func compare(t *testing.T, h *Handler, dimension, query string) {
	t.Helper()
	read := func(q string, args ...any) map[string]string {
		rows, err := h.DB.Query(h.DB.Rebind(q), args...)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		defer rows.Close()
		found := map[string]string{}
		for rows.Next() {
			var day, site, name string
			var views, visitors int64
			if err := rows.Scan(&day, &site, &name, &views, &visitors); err != nil {
				t.Fatal(err)
			}
			found[day+"|"+site+"|"+name] = fmt.Sprint(views, " views, ", visitors, " visitors")
		}
		return found
	}
	got := read("SELECT day, site, name, views, visitors FROM cmsjobs_analytics_daily WHERE dimension = ?", dimension)
	want := read(query)
	if len(want) == 0 {
		t.Fatalf("nothing to compare for %s", dimension)
	}
	for k := range want {
		if got[k] != want[k] {
			t.Errorf("%s %s: %q, a plain count says %q", dimension, k, got[k], want[k])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s has %d rows, a plain count %d", dimension, len(got), len(want))
	}
}

// Any split of the same rows into runs, in any order, twice over, gives equal
// tables.
func TestAnySplitIntoRunsGivesEqualTables(t *testing.T) {
	each(t, func(t *testing.T, h *Handler) {
		ctx := context.Background()
		rows := generated(3000, 2, 7)
		whole := bench(t, jobstest.SQLite)
		if err := write(ctx, whole.DB, slices.Clone(rows)); err != nil {
			t.Fatal(err)
		}
		if _, err := whole.Process(ctx, ProcessPayload{}); err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(3, 3))
		r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		for len(rows) > 0 {
			n := min(len(rows), 1+r.IntN(900))
			if err := write(ctx, h.DB, slices.Clone(rows[:n])); err != nil {
				t.Fatal(err)
			}
			if err := write(ctx, h.DB, slices.Clone(rows[:n/2])); err != nil { // the same rows again
				t.Fatal(err)
			}
			rows = rows[n:]
			if _, err := h.Process(ctx, ProcessPayload{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := h.Process(ctx, ProcessPayload{DateRange: &DateRange{"2026-03-01", "2026-03-31"}}); err != nil {
			t.Fatal(err)
		}
		if got, want := h.dump(t), whole.dump(t); !slices.Equal(got, want) {
			t.Errorf("%d rows against %d; first got %v, want %v", len(got), len(want), got[:min(3, len(got))],
				want[:min(3, len(want))])
		}
	})
}

// Roll-ups at once, while rows keep coming, end in the right figures.
func TestRollUpsAtOnceEndInTheRightFigures(t *testing.T) {
	each(t, func(t *testing.T, h *Handler) {
		ctx := context.Background()
		rows := generated(2000, 1, 9)
		var work sync.WaitGroup
		for part := range slices.Chunk(rows, 250) {
			work.Go(func() {
				if err := write(ctx, h.DB, slices.Clone(part)); err != nil {
					t.Error(err)
				}
				if _, err := h.Process(ctx, ProcessPayload{}); err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		if _, err := h.Process(ctx, ProcessPayload{}); err != nil {
			t.Fatal(err)
		}
		var views sql.NullInt64
		if err := h.DB.Get(&views,
			"SELECT SUM(views) FROM cmsjobs_analytics_daily WHERE dimension IN ('total', 'bot')"); err != nil {
			t.Fatal(err)
		}
		var want int64
		for _, r := range rows {
			if r.event == "" {
				want++
			}
		}
		if views.Int64 != want {
			t.Errorf("%d views in the roll-up, %d were written", views.Int64, want)
		}
	})
}
