package web_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
	"github.com/cmsjobs/cmsjobs/internal/web/feature"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/overview"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/usage"
)

// ran puts an attempt into the history.
func (s *site) ran(at time.Time, kind, queue, outcome string, duration, wait time.Duration) {
	s.t.Helper()
	if _, err := s.db.Exec(fmt.Sprintf("INSERT INTO cmsjobs_runs (job_id, uuid, type, queue, attempt, outcome, worker, "+
		"lease, ended_at, duration_ms, wait_ms) VALUES (1,'u','%s','%s',1,'%s','w','x',%d,%d,%d)", kind, queue, outcome,
		at.UnixMilli(), duration.Milliseconds(), wait.Milliseconds())); err != nil {
		s.t.Fatal(err)
	}
}

// day fills the last hours: mail every ten minutes, sitemaps that fail.
func (s *site) day() {
	now := time.Now()
	for i := range 60 {
		at := now.Add(-time.Duration(i) * 20 * time.Minute)
		s.ran(at, "mail.send", "mail", "completed", 9*time.Millisecond, 4*time.Millisecond)
		s.ran(at, "media.processImage", "default", "completed", 12*time.Millisecond, 2*time.Millisecond)
		if i%7 == 0 {
			s.ran(at, "sitemap.generate", "default", "retried", 2*time.Second, time.Second)
			s.ran(at, "sitemap.generate", "default", "failed", 2*time.Second, time.Second)
		}
	}
}

func TestSeriesByTheAPI(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	s.day()
	sums := map[string]map[string]int64{"outcome": {"completed": 120, "retried": 9, "failed": 9},
		"type":  {"mail.send": 60, "media.processImage": 60, "sitemap.generate": 18},
		"queue": {"mail": 60, "default": 78}}
	for by, want := range sums {
		var v overview.SeriesView
		s.admin("GET", "/api/v1/series?range=24h&by="+by, nil).want(t, 200).into(t, &v)
		got := map[string]int64{}
		for _, x := range v.Series {
			for _, n := range x.Counts {
				got[x.Name] += n
			}
			if len(x.Counts) != 48 {
				t.Errorf("%s has %d steps", x.Name, len(x.Counts))
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("by %s: %v, want %v", by, got, want)
		}
		if v.Wait.All != (overview.SpreadItem{Attempts: 138, P50: 4, P95: 991, P99: 991}) ||
			v.Duration.All != (overview.SpreadItem{Attempts: 138, P50: 12, P95: 1983, P99: 1983}) {
			t.Errorf("wait %+v, duration %+v", v.Wait.All, v.Duration.All)
		}
		if v.Wait.P50[0] != nil || v.Wait.P50[47] == nil {
			t.Errorf("the percentiles of an empty step and of now: %v %v", v.Wait.P50[0], v.Wait.P50[47])
		}
	}
	for path, field := range map[string]string{"range=2h": "range", "by=site": "by"} {
		var p web.Problem
		if s.admin("GET", "/api/v1/series?"+path, nil).want(t, 400).into(t, &p); !strings.Contains(fmt.Sprint(p), field) {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

// TestTheOverviewIsWholeWithoutAScript reads what the server draws: charts with
// names and values, tables, links for each range and split.
func TestTheOverviewIsWholeWithoutAScript(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	s.day()
	for lang, texts := range map[string][]string{
		"en": {"Completed and failed attempts in the last 24 hours: Completed 120, Retried 9, Failed 9",
			"Wait until start in the last 24 hours: p50 4 ms, p95 991 ms, p99 991 ms", "Values as a table", "By queue"},
		"vi": {"Lần thử hoàn thành và thất bại trong 24 giờ qua: Hoàn thành 120, Thử lại 9, Thất bại 9",
			"Giá trị dạng bảng", "Theo hàng đợi"}} {
		v := s.visitor(t).signIn("admin")
		v.post("/admin/look", url.Values{"lang": {lang}, "back": {"/admin"}}).get("/admin").sees(texts...).sees(`class="b-bad"`, `href="/admin?range=30d&amp;by=outcome"`,
			`href="/admin?range=24h&amp;by=queue"`, `<td class="num">991 ms</td>`)
		if strings.Contains(v.page, " style=") || strings.Contains(v.page, "<script>") {
			t.Error("the page has what its Content-Security-Policy forbids")
		}
	}
	s.visitor(t).signIn("admin").get("/admin?range=7d&by=type").sees("media.processImage <b>60</b>",
		"in the last 7 days: mail.send 60, media.processImage 60, sitemap.generate 18")
	s.visitor(t).signIn("admin").get("/admin?range=ever&by=moon").sees("in the last 24 hours: Completed 120")
}

// TestHowManyWaitedAndRanIsALine has attempts that waited four hours and ran for twelve,
// until six hours ago: the lines say so in words, on the page as the server draws it.
func TestHowManyWaitedAndRanIsALine(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	for range 20 {
		s.ran(time.Now().Add(-6*time.Hour), "mail.send", "mail", "completed", 12*time.Hour, 4*time.Hour)
	}
	average := regexp.MustCompile(`<svg class="spark (idle|busy)"[^>]* role="img" aria-label="([^"]*?)([0-9.]+)([^"]*)"` +
		`><title>[^<]+</title>`)
	for lang, texts := range map[string][2]string{"en": {"Waiting: about ", " on average, 20 at most, in the last 24 hours"},
		"vi": {"Đang chờ: trung bình khoảng ", ", nhiều nhất 20, trong 24 giờ qua"}} {
		v := s.visitor(t).signIn("admin")
		v.post("/admin/look", url.Values{"lang": {lang}, "back": {"/admin"}}).get("/admin")
		found := average.FindAllStringSubmatch(v.page, -1)
		if len(found) != 2 || found[0][1] != "idle" || found[1][1] != "busy" {
			t.Fatalf("%s: %q are not the lines of what waited and ran", lang, found)
		}
		if found[0][2] != texts[0] || found[0][4] != texts[1] {
			t.Errorf("%s: %q", lang, found[0][0])
		}
		for i, want := range []float64{20. * 4 / 24, 20. * 12 / 24} {
			if got, err := strconv.ParseFloat(found[i][3], 64); err != nil || math.Abs(got-want) > 0.15*want {
				t.Errorf("%s: %q is not about %.1f", lang, found[i][0], want)
			}
		}
	}
}

// TestQuickActionsAreThoseOfThePerson shows a reader no button that would be
// refused, and starts a job for who may.
func TestQuickActionsAreThoseOfThePerson(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	reader := s.visitor(t).signIn("viewer").get("/admin")
	if strings.Contains(reader.page, `class="quick"`) {
		t.Error("who may only read is offered actions")
	}
	admin := s.visitor(t).signIn("admin").get("/admin").sees(`class="quick"`, "Enqueue a job", "Pause a queue")
	if strings.Contains(admin.page, "backup.generate") {
		t.Error("a type that this service does not know can be started")
	}
}

// TestTheOverviewFollowsTheDatabasesClock asks a server whose own clock is days off.
func TestTheOverviewFollowsTheDatabasesClock(t *testing.T) {
	for _, off := range []time.Duration{-400 * 24 * time.Hour, -2 * time.Hour, 2 * time.Hour, 40 * 24 * time.Hour} {
		s := newSite(t, jobstest.SQLite, func(x *config) {
			x.Now = func() time.Time { return time.Now().Add(off) }
		})
		s.day()
		for _, look := range []string{"1h", "24h", "7d", "30d"} {
			s.admin("GET", "/admin?range="+look, nil).want(t, 200)
		}
		var v overview.SeriesView
		s.admin("GET", "/api/v1/series?range=24h", nil).want(t, 200).into(t, &v)
		if v.Wait.All.Attempts != 138 {
			t.Errorf("with a clock that is off by %s, %d attempts of a day are counted, want 138", off, v.Wait.All.Attempts)
		}
	}
}

// fillingSite grows by a gibibyte a day, a tenth of it tables.
type fillingSite struct {
	*features
	days int
	free int64
}

func (f fillingSite) SizesSince(context.Context, time.Time) (list []usage.SizeDay, err error) {
	for i := range f.days {
		list = append(list, usage.SizeDay{Day: noon.AddDate(0, 0, i+1-f.days).Format(time.DateOnly),
			Parts: map[string]int64{"media": int64(i+40) * 9 << 30 / 10, "table": int64(i+40) << 30 / 10}})
	}
	return list, nil
}

func (f fillingSite) Free(context.Context) (int64, error) {
	if f.free < 0 {
		return 0, jobs.ErrNotFound
	}
	return f.free, nil
}

// TestTheDisksEndIsForecast fits a line, and says why where there is none.
func TestTheDisksEndIsForecast(t *testing.T) {
	for _, c := range []struct {
		days int
		free int64
		want string
	}{{20, 10 << 30, "The disk is full about 2026-12-01."}, {20, -1, "– (the free space is unknown)"},
		{2, 10 << 30, "– (a trend needs 3 days)"}, {20, 5000 << 30, "does not fill up within three years"}} {
		s := newSite(t, jobstest.SQLite, furnished, func(x *config) {
			x.Now = func() time.Time { return noon }
			x.Parts = feature.Ports{Usage: fillingSite{x.Schedules.(*features), c.days, c.free}}
		})
		v := s.admin("GET", "/admin", nil).want(t, 200)
		page := string(v.body)
		if !strings.Contains(page, c.want) {
			t.Errorf("after %d days with %d bytes free, the page does not say %q", c.days, c.free, c.want)
		}
		if grows := c.days == 20; grows != strings.Contains(page, "922 MiB a day") {
			t.Errorf("after %d days, the growth of media is wrong", c.days)
		}
	}
}

var assetPaths = regexp.MustCompile(`(?:href|src)="(/admin/assets/[^"#]+)`)

// TestTheFirstPaintIsSmall counts what a browser loads before the overview stands.
func TestTheFirstPaintIsSmall(t *testing.T) {
	const budget = 100_000
	s := newSite(t, jobstest.SQLite, furnished, plentiful)
	s.day()
	page := s.do("GET", "/admin", nil, bearer(s.tokens[access.Admin])).want(t, 200).body
	paths := []string{}
	for _, found := range assetPaths.FindAllSubmatch(page, -1) {
		paths = append(paths, string(found[1]))
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	if len(paths) < 7 {
		t.Fatalf("only %v are loaded", paths)
	}
	size := compressed(t, page)
	for _, path := range paths {
		size += compressed(t, s.do("GET", path, nil).want(t, 200).body)
	}
	if t.Logf("%d bytes in %d files", size, len(paths)+1); size > budget {
		t.Errorf("the overview needs %d bytes, %d are allowed", size, budget)
	}
}

func compressed(t *testing.T, data []byte) int {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Len()
}
