package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/queue"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// These tests run a real Laravel (Debian's php-laravel-framework) beside us on
// the same tables.

// laravel is a lab with a PHP beside it.
type laravel struct{ *lab }

func newLaravel(t *testing.T, engine jobstest.Engine) laravel {
	t.Helper()
	for _, check := range [][]string{{"php", "-r", `exit(extension_loaded("pdo_mysql") ? 0 : 1);`},
		{"test", "-f", "/usr/share/php/Illuminate/Queue/autoload.php"}} {
		if err := exec.Command(check[0], check[1:]...).Run(); err != nil {
			jobstest.Skip(t, "no Laravel here (packages php-cli, php-mysql, php-laravel-framework): %v", err)
		}
	}
	l := newLab(t, engine)
	l.db.MustExec("CREATE TABLE php_effects (id BIGINT AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL, pid INT NOT NULL)")
	return laravel{l}
}

// artisan prepares one command of Laravel.
func (l laravel) artisan(args ...string) *exec.Cmd {
	cmd := exec.Command("php", append([]string{"testdata/php/artisan.php"}, args...)...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("DB_PORT=%d", l.server.Port), "DB_DATABASE=lab",
		fmt.Sprintf("RETRY_AFTER=%d", int(l.config.Lease.Seconds())))
	return cmd
}

func (l laravel) run(args ...string) string {
	l.t.Helper()
	out, err := l.artisan(args...).CombinedOutput()
	if err != nil {
		l.t.Fatalf("artisan %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// work runs our worker on the given queues until they are empty.
func (l laravel) work(handler func(context.Context, jobs.Job, effect) error, queues ...string) {
	l.t.Helper()
	registry := jobs.NewRegistry()
	jobs.Handle(registry, effectKind, handler)
	l.workWith(registry, queues...)
}

func (l laravel) workWith(registry *jobs.Registry, queues ...string) {
	l.t.Helper()
	store, err := queue.Open(context.Background(), l.db, tables.Options{Registry: registry, DefaultQueue: "cmsjobs",
		RetryAfter: l.config.Lease})
	if err != nil {
		l.t.Fatal(err)
	}
	w, err := jobs.NewWorker(jobs.Config{Source: store, Workers: store, Registry: registry, Now: time.Now,
		Info:   jobs.WorkerInfo{ID: "test"},
		Queues: queues, Lease: l.config.Lease, StopWhenEmpty: true, PollMin: 10 * time.Millisecond})
	if err != nil {
		l.t.Fatal(err)
	}
	if err := w.Run(context.Background()); err != nil {
		l.t.Fatal(err)
	}
}

func (l laravel) count(query string) (n int) {
	l.t.Helper()
	if err := l.db.Get(&n, query); err != nil {
		l.t.Fatal(err)
	}
	return n
}

func TestPHPsOwnRowsStayAsTheyAre(t *testing.T) { jobstest.EachMySQL(t, testPHPsOwnRowsStayAsTheyAre) }

func testPHPsOwnRowsStayAsTheyAre(t *testing.T, engine jobstest.Engine) {
	l := newLaravel(t, engine)
	l.run("push", "50")
	l.run("push-type", "test.effect", `{"key":7}`)
	var ran []effect
	l.work(func(_ context.Context, _ jobs.Job, e effect) error { ran = append(ran, e); return nil }, "default")
	if len(ran) != 1 || ran[0].Key != 7 {
		t.Errorf("ran %+v, want what Queue::push('test.effect', …) wrote", ran)
	}
	if n := l.count("SELECT COUNT(*) FROM jobs WHERE attempts = 0 AND reserved_at IS NULL"); n != 50 {
		t.Errorf("%d of 50 rows of PHP are untouched", n)
	}
	l.run("queue:work", "--stop-when-empty", "--sleep=0")
	if n, different := l.count("SELECT COUNT(*) FROM php_effects"),
		l.count("SELECT COUNT(DISTINCT k) FROM php_effects"); n != 50 || different != 50 {
		t.Errorf("PHP then ran %d jobs, %d different ones; want 50", n, different)
	}
}

func TestLaravelListsAndRetriesWhatWeFailed(t *testing.T) {
	jobstest.EachMySQL(t, testLaravelListsAndRetriesWhatWeFailed)
}

func testLaravelListsAndRetriesWhatWeFailed(t *testing.T, engine jobstest.Engine) {
	l := newLaravel(t, engine)
	// A flat row as a CMS inserts it, without any of Laravel's keys.
	l.db.MustExec(`INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at)
		VALUES ('cmsjobs', '{"type":"test.effect","key":3}', 0, NULL, UNIX_TIMESTAMP(), UNIX_TIMESTAMP())`)
	refuse := func(context.Context, jobs.Job, effect) error { return jobs.Permanent(errors.New("the disk is full")) }
	l.work(refuse, "cmsjobs")
	if list := l.run("queue:failed"); !strings.Contains(list, "test.effect") || !strings.Contains(list, "cmsjobs") {
		t.Errorf("queue:failed says\n%s", list)
	}
	l.run("queue:retry", "all")
	if l.count("SELECT COUNT(*) FROM failed_jobs") != 0 || l.count("SELECT COUNT(*) FROM jobs") != 1 {
		t.Fatal("queue:retry did not bring the job back")
	}
	l.work(refuse, "cmsjobs") // fails again: the uuid must not stand in its own way
	l.run("queue:retry", "all")
	var ran []effect
	l.work(func(_ context.Context, _ jobs.Job, e effect) error { ran = append(ran, e); return nil }, "cmsjobs")
	if len(ran) != 1 || ran[0].Key != 3 {
		t.Errorf("after queue:retry ran %+v, want key 3", ran)
	}
}

func TestAPHPWorkerThatMeetsOurRowFailsItInsteadOfLosingIt(t *testing.T) {
	jobstest.EachMySQL(t, testAPHPWorkerThatMeetsOurRowFailsItInsteadOfLosingIt)
}

func testAPHPWorkerThatMeetsOurRowFailsItInsteadOfLosingIt(t *testing.T, engine jobstest.Engine) {
	l := newLaravel(t, engine)
	l.enqueue(5, 1, effect{})
	l.run("queue:work", "--once", "--tries=1", "--queue=default")
	if l.count("SELECT COUNT(*) FROM failed_jobs") != 1 {
		t.Fatal("our row is not in failed_jobs")
	}
	l.run("queue:retry", "all")
	var ran []effect
	l.work(func(_ context.Context, _ jobs.Job, e effect) error { ran = append(ran, e); return nil }, "default")
	if len(ran) != 1 || ran[0].Key != 5 {
		t.Errorf("ran %+v, want key 5", ran)
	}
}

// What docs/install.md shows for PHP survives the PHP worker that the same page
// tells owners to run, and does what it says.
func TestTheDocumentedPHPBesideAPHPWorker(t *testing.T) {
	jobstest.EachMySQL(t, testTheDocumentedPHPBesideAPHPWorker)
}

func testTheDocumentedPHPBesideAPHPWorker(t *testing.T, engine jobstest.Engine) {
	l := newLaravel(t, engine)
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(page), "```php\n")
	block, _, closed := strings.Cut(block, "```")
	if !found || !closed || !strings.Contains(block, "sitemap.generate") ||
		!strings.Contains(strings.Join(strings.Fields(string(page)), " "), "php artisan queue:work --queue=default") {
		t.Fatal("docs/install.md has no PHP for a sitemap, or tells of another worker")
	}
	file := filepath.Join(t.TempDir(), "snippet.php")
	if err := os.WriteFile(file, []byte("<?php\n"+block), 0o600); err != nil {
		t.Fatal(err)
	}
	l.run("run", file)
	l.run("queue:work", "--queue=default", "--stop-when-empty", "--sleep=0")
	var ran []string
	registry := jobs.NewRegistry()
	type payload struct {
		Force *bool `json:"force"`
	}
	jobs.Handle(registry, jobs.Kind[payload]{Name: "sitemap.generate"}, func(_ context.Context, j jobs.Job,
		p payload) error {
		if p.Force == nil {
			return jobs.Permanent(errors.New("no force"))
		}
		ran = append(ran, j.Type)
		return jobs.Permanent(errors.New("shown by queue:failed"))
	})
	l.workWith(registry, "cmsjobs")
	if len(ran) != 1 {
		t.Errorf("%d jobs ran; %d rows wait, %d failed", len(ran), l.count("SELECT COUNT(*) FROM jobs"),
			l.count("SELECT COUNT(*) FROM failed_jobs"))
	}
	if list := l.run("queue:failed"); !strings.Contains(list, "sitemap.generate") {
		t.Errorf("queue:failed says\n%s", list)
	}
}

// A5: a job that lasts far longer than PHP's retry_after runs once although a
// PHP worker asks for the same queue all the time, because its lease, which PHP
// reads too, is renewed.
func TestPHPDoesNotTakeAJobThatStillRuns(t *testing.T) {
	jobstest.EachMySQL(t, testPHPDoesNotTakeAJobThatStillRuns)
}

func testPHPDoesNotTakeAJobThatStillRuns(t *testing.T, engine jobstest.Engine) {
	l := newLaravel(t, engine)
	l.enqueue(0, 1, effect{})
	php := l.artisan("queue:work", "--sleep=0.2", "--queue=default")
	var runs atomic.Int32
	started := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		l.work(func(context.Context, jobs.Job, effect) error {
			if runs.Add(1) == 1 {
				close(started)
			}
			time.Sleep(3 * l.config.Lease)
			return nil
		}, "default")
	})
	<-started
	if err := php.Start(); err != nil {
		t.Fatal(err)
	}
	work.Wait()
	_ = php.Process.Kill()
	_ = php.Wait()
	if runs.Load() != 1 || l.count("SELECT COUNT(*) FROM failed_jobs") != 0 ||
		l.count("SELECT COUNT(*) FROM jobs") != 0 {
		t.Errorf("%d runs, %d rows in failed_jobs, %d in jobs", runs.Load(),
			l.count("SELECT COUNT(*) FROM failed_jobs"), l.count("SELECT COUNT(*) FROM jobs"))
	}
}

// F16: PHP's workers and ours on one table, killed among each other.
func TestPHPAndGoWorkersShareATableUnderKills(t *testing.T) {
	jobstest.EachMySQL(t, testPHPAndGoWorkersShareATableUnderKills)
}

func testPHPAndGoWorkersShareATableUnderKills(t *testing.T, engine jobstest.Engine) {
	l := newLaravel(t, engine)
	n := size(300, 5000)
	l.run("push", fmt.Sprint(n))
	l.config.Queues = []string{"cmsjobs", "default"}
	l.enqueueOn("cmsjobs", 0, n, effect{Length: 5 * time.Millisecond})
	var php []*exec.Cmd
	startPHP := func() *exec.Cmd {
		cmd := l.artisan("queue:work", "--sleep=0.1", "--tries=20", "--queue=default")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	for range 2 {
		php = append(php, startPHP())
	}
	ours := []*process{startChild(t, l.config), startChild(t, l.config)}
	for round := range size(4, 40) {
		time.Sleep(300 * time.Millisecond)
		l.fault(ours[round%2].cmd.Process.Pid, 0)
		ours[round%2].kill()
		ours[round%2] = startChild(t, l.config)
		_ = php[round%2].Process.Kill()
		_ = php[round%2].Wait()
		php[round%2] = startPHP()
	}
	l.sink.await(t, n, 3*time.Minute)
	deadline := time.Now().Add(3 * time.Minute)
	for l.count("SELECT COUNT(DISTINCT k) FROM php_effects") < n && time.Now().Before(deadline) {
		time.Sleep(100 * time.Millisecond)
	}
	l.empty()
	for _, cmd := range php {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
	}
	if got := l.count("SELECT COUNT(DISTINCT k) FROM php_effects"); got != n {
		t.Errorf("PHP ran %d of its %d jobs", got, n)
	}
	l.check(n)
}
