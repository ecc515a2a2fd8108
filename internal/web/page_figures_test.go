package web_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/cache"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/web/feature"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/backups"
	"github.com/cmsjobs/cmsjobs/internal/web/feature/usage"
)

// slowSite measures for as long as the test likes.
type slowSite struct {
	*features
	done  chan struct{}
	asked *atomic.Int32
}

func (h slowSite) StorageUsage(ctx context.Context) ([]usage.UsageItem, error) {
	h.asked.Add(1)
	select {
	case <-h.done:
		return []usage.UsageItem{{Name: "storage/logs", Class: "logs", Bytes: 3 << 20, Rows: -1}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestAPageDoesNotWaitForExpensiveFigures asks for sizes that take for ever: the page
// is there at once, asks again by itself, and many readers measure once.
func TestAPageDoesNotWaitForExpensiveFigures(t *testing.T) {
	h := slowSite{done: make(chan struct{}), asked: &atomic.Int32{}}
	s := newSite(t, jobstest.SQLite, furnished, func(c *config) {
		h.features = c.Schedules.(*features)
		c.Parts = feature.Ports{Usage: h}
	})
	v := s.visitor(t)
	v.hasty = true
	v.signIn("admin")
	for range 5 {
		v.get("/admin/usage").sees("load in the background", `hx-trigger="load delay`)
		v.get("/admin").sees("load in the background", "All entries")
	}
	if n := h.asked.Load(); n != 1 {
		t.Errorf("sizes were measured %d times at once", n)
	}
	close(h.done)
	v.hasty = false
	v.get("/admin/usage").sees("3.0 MiB")
	if strings.Contains(v.page, "load in the background") || strings.Contains(v.page, ">-1") {
		t.Errorf("%s", v.page)
	}
}

type awaySite struct{ *features }

func (awaySite) Backups(context.Context) ([]backups.Backup, error) {
	return nil, errors.New("dial tcp: connection refused")
}

func TestTheOverviewStandsWhileTheBucketIsAway(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished, func(c *config) {
		c.Parts = feature.Ports{Backups: awaySite{c.Schedules.(*features)}}
	})
	s.visitor(t).signIn("admin").get("/admin").sees("Backup storage is unreachable", "All entries")
}

// TestTheBackupsPageSaysWhyTheBucketIsAway looks where people look then: the
// reason is there, and so is what the monitor knows.
func TestTheBackupsPageSaysWhyTheBucketIsAway(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished, func(c *config) {
		c.Parts = feature.Ports{Backups: awaySite{c.Schedules.(*features)}}
	})
	v := s.visitor(t).signIn("admin").get("/admin/backups").sees("cannot be listed", "dial tcp: connection refused",
		"the newest good backup is 40h old")
	if v.status != 200 || strings.Contains(v.page, "There is no backup yet") ||
		strings.Contains(v.page, "load in the background") {
		t.Errorf("%d %s", v.status, v.page)
	}
}

// timeoutSite takes long to fail, once; then it hangs, until it is back.
type timeoutSite struct {
	*features
	asked      *atomic.Int32
	fail, back chan struct{}
}

func (h timeoutSite) Backups(ctx context.Context) ([]backups.Backup, error) {
	if h.asked.Add(1) == 1 {
		<-h.fail
		return nil, errors.New("dial tcp: i/o timeout")
	}
	select {
	case <-h.back:
		return h.features.Backups(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestAnErrorThatIsLongInComingIsSeen asks a bucket that times out: no page
// waits for that long, so that the error must wait for a page, but not so long
// that it learns of a bucket that is back.
func TestAnErrorThatIsLongInComingIsSeen(t *testing.T) {
	start, later := time.Now(), atomic.Int64{}
	h := timeoutSite{asked: &atomic.Int32{}, fail: make(chan struct{}), back: make(chan struct{})}
	s := newSite(t, jobstest.SQLite, furnished, func(c *config) {
		h.features = c.Schedules.(*features)
		c.Parts, c.Now = feature.Ports{Backups: h}, func() time.Time { return start.Add(time.Duration(later.Load())) }
	})
	v := s.visitor(t)
	v.hasty = true
	v.signIn("admin").get("/admin/backups").sees("load in the background")
	later.Add(int64(time.Second))
	close(h.fail)
	v.hasty = false
	for range 3 {
		v.get("/admin/backups").sees("cannot be listed", "i/o timeout")
	}
	close(h.back)
	later.Add(int64(10 * time.Second))
	if v.get("/admin/backups").sees("b.tar.zst"); strings.Contains(v.page, "cannot be listed") {
		t.Errorf("%s", v.page)
	}
}

// grownSite knows how sizes were.
type grownSite struct{ *features }

func (grownSite) SizesSince(context.Context, time.Time) ([]usage.SizeDay, error) {
	return []usage.SizeDay{{Day: "2026-11-20", Disk: 1 << 30, Tables: 5 << 20},
		{Day: "2026-11-21", Disk: 3 << 30, Tables: 4 << 20}}, nil
}

func TestUsageIsDrawn(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished, func(c *config) {
		c.Parts = feature.Ports{Usage: grownSite{c.Schedules.(*features)}}
	})
	s.visitor(t).signIn("admin").get("/admin/usage").sees("3.0 GiB, 2.0 GiB more than on 2026-11-20",
		"4.0 MiB, 1.0 MiB less than on 2026-11-20", "2026-11-21: 3.0 GiB")
}

// TestCleaningSaysFirstWhatItWillRemove presses the buttons of types that can say in a
// dry run what they would do, one of them by the jobs that follow it.
func TestCleaningSaysFirstWhatItWillRemove(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	type payload struct {
		DryRun bool `json:"dryRun,omitempty"`
	}
	var ran atomic.Int32
	clean := jobs.Kind[payload]{Name: "queue.clean", Queue: "cmsjobs"}
	expire := jobs.Kind[payload]{Name: "cache.clearExpired", Queue: "cmsjobs"}
	run := func(result any) func(context.Context, jobs.Job, payload) error {
		return func(ctx context.Context, _ jobs.Job, p payload) error {
			if !p.DryRun {
				ran.Add(1)
			}
			return jobs.SetResult(ctx, result)
		}
	}
	jobs.Handle(s.registry, clean, run(map[string]any{"runs": 4321}))
	jobs.Handle(s.registry, expire, run(cache.Report{DryRun: true, Files: 1, Bytes: 2 << 20,
		Rows: map[string]int64{"sessions": 7}}))
	jobs.Results[cache.Report](s.registry, expire)
	jobs.Handle(s.registry, jobs.Kind[payload]{Name: "maintenance.cleanup", Queue: "cmsjobs"},
		func(ctx context.Context, _ jobs.Job, p payload) error {
			jobs.FollowUp(ctx, clean.New(p), expire.New(p))
			return jobs.SetResult(ctx, cache.Maintained{DryRun: p.DryRun})
		})
	v := s.visitor(t).signIn("admin")
	fields := `<td class="wrap-code">runs</td><td class="wrap-code">4321</td>`
	v.get("/admin/usage").press(`id="do-queue.clean"`).sees(fields)
	said := []string{"<h2><code>cache.clearExpired</code></h2>", "<p>1 file, 2.0 MiB, would be deleted.</p>",
		"<p>7 rows would be deleted.</p>", `<td class="wrap-code">sessions</td><td class="wrap-code">7</td>`}
	v.get("/admin/usage").press(`id="do-maintenance.cleanup"`).sees(append(said, fields,
		"<h2><code>queue.clean</code></h2>")...)
	v.press("/admin/look", "lang", "vi", "back", "/admin/usage")
	v.get("/admin/usage").press(`id="do-cache.clearExpired"`).sees("<p>1 tệp, 2.0 MiB, sẽ bị xóa.</p>",
		"<p>7 dòng sẽ bị xóa.</p>", `<th scope="col">Bảng</th>`)
	if strings.Contains(v.page, "<h2><code>") {
		t.Error("the type that was asked for is named again")
	}
	if ran.Load() != 0 || s.due() != 0 {
		t.Fatal("asking did it")
	}
	v.press("/admin/look", "lang", "en", "back", "/admin/usage")
	v.get("/admin/usage").press(`id="do-cache.clear"`).sees("There is nothing to remove now")
	v.get("/admin/usage").press(`id="do-cache.clearExpired"`).press("sure").sees("Waiting to start")
	s.work()
	v.get(v.at).sees("<p>1 file, 2.0 MiB, would be deleted.</p>", "<summary>As JSON</summary>")
}

// partlyDone has a schedule whose last backup lacked something.
type partlyDone struct{ *features }

func (partlyDone) Ticks(context.Context, string, jobs.Page) (jobs.List[jobs.TickRecord], error) {
	return jobs.List[jobs.TickRecord]{Items: []jobs.TickRecord{{Tick: noon, Outcome: jobs.PartialOutcome},
		{Tick: noon.Add(-time.Hour), Outcome: "completed"}}}, nil
}

// TestAPartOfTheWorkIsNeitherDoneNorFailed looks at both strips of an entry whose last
// job did a part: shape, word, sum for screen readers, and the legend.
func TestAPartOfTheWorkIsNeitherDoneNorFailed(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished, func(c *config) { c.Schedules = partlyDone{c.Schedules.(*features)} })
	v := s.visitor(t).signIn("admin")
	const square = `<rect class="part"`
	v.get("/admin/schedules").sees(square, `<rect class="part-of"`, "<title>2026-11-21 12:00 UTC partial</title>",
		"1 completed, 1 partial", `</svg>partial</li>`)
	v.get("/admin").sees(square, `<rect class="part-of"`, "<title>2026-11-21 12:00 UTC partial</title>",
		"1 completed, 1 partial")
	v.press("/admin/look", "lang", "vi", "back", "/admin/schedules")
	v.get("/admin/schedules").sees("12:00 UTC một phần</title>", "1 hoàn thành, 1 một phần", `</svg>một phần</li>`)
	v.get("/admin").sees("12:00 UTC một phần</title>", "1 hoàn thành, 1 một phần")
}

// TestTickedJobsAreChangedAndNoOthers posts the form of the boxes.
func TestTickedJobsAreChangedAndNoOthers(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	var ids []string
	for range 4 {
		ids = append(ids, s.enqueue(`{"type":"cache.clear","delay":600}`))
	}
	v := s.visitor(t).signIn("admin")
	verification := attributes(
		inputTag.FindString(v.get("/admin/jobs?status=queued").page[strings.Index(v.page, `id="chosen"`):]))["value"]
	v.post("/admin/jobs/bulk", url.Values{"_csrf": {verification}, "chosen": {"yes"}, "action": {"cancel"},
		"sure": {"yes"}}).sees("No job is selected", `notice warn fault"`)
	v.post("/admin/jobs/bulk", url.Values{"_csrf": {verification}, "chosen": {"yes"}, "action": {"cancel"},
		"ids": ids[:2]}).sees("2 waiting jobs will leave").press("sure").sees("2 jobs cancelled")
	if n := s.due(); n != 0 {
		t.Errorf("%d are due", n)
	}
	v.get("/admin/jobs?status=queued").sees(ids[2], ids[3])
}

func TestReasonsAndRefusalsComeInVietnamese(t *testing.T) {
	s := newSite(t, jobstest.SQLite, furnished)
	id := s.enqueue(`{"type":"cache.clear","delay":600}`)
	v := s.visitor(t).signIn("admin")
	v.press("/admin/look", "lang", "vi", "back", "/admin")
	v.get("/admin/jobs/" + id).sees("Chưa đến hạn: còn")
	v.get("/admin/jobs/nothing").sees2("Không có gì với mã này.")
	v.get("/admin/jobs?since=soon").sees2("phải là thời điểm như")
}
