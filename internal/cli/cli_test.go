package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/demo"
	"github.com/cmsjobs/cmsjobs/internal/doctor"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/testgolden"
)

// result is what one call of the program gave.
type result struct {
	code     int
	out, err string
}

// call runs the program with words, as a shell would, with nothing in its
// environment but what env names.
func call(t *testing.T, env []string, args ...string) result {
	t.Helper()
	return callAt(t, 0, env, args...)
}

// callAt is call on a host whose clock is ahead.
func callAt(t *testing.T, ahead time.Duration, env []string, args ...string) result {
	t.Helper()
	var out, errs jobstest.Log // a part of the command may log when it has returned
	empty := filepath.Join(t.TempDir(), "empty.yaml")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := &commandLine{
		Process: app.Process{Version: "dev", Err: &errs, Now: func() time.Time { return time.Now().Add(ahead) }},
		out:     &out, in: strings.NewReader(`{"fail":"from stdin"}`),
		environ: append([]string{"CMSJOBS_CONFIG=" + empty,
			"CMSJOBS_QUEUE_MEMORY=8GiB"}, env...)} // this process has the memory of the tests before, too
	code := a.run(args)
	return result{code, out.String(), errs.String()}
}

// database makes an empty site's database and returns the flag that names it.
func newDatabase(t *testing.T, engine jobstest.Engine, layout tables.Layout) string {
	t.Helper()
	db := jobstest.Open(t, engine)
	if _, err := tables.CreateTables(t.Context(), db.DB, layout, ""); err != nil {
		t.Fatal(err)
	}
	if engine == jobstest.SQLite {
		path := jobstest.SQLiteFile(db.DSN)
		return "--dsn=sqlite:" + path
	}
	return "--dsn=" + db.DSN
}

func want(t *testing.T, r result, code int, pieces ...string) {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit code %d, want %d\nout: %s\nerr: %s", r.code, code, r.out, r.err)
	}
	for _, piece := range pieces {
		if !strings.Contains(r.out+r.err, piece) {
			t.Errorf("%q is not said\nout: %s\nerr: %s", piece, r.out, r.err)
		}
	}
}

// answer decodes JSON output.
func answer[T any](t *testing.T, r result) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(r.out), &v); err != nil {
		t.Fatalf("%v in %s%s", err, r.out, r.err)
	}
	return v
}

func TestAJobsLifeOnTheCommandLine(t *testing.T) {
	t.Parallel()
	quiet := []string{"CMSJOBS_NOTIFY_MAIL=false", "CMSJOBS_NOTIFY_CMS=false"} // messages are jobs, too
	for _, c := range []struct {
		engine jobstest.Engine
		layout tables.Layout
	}{{jobstest.SQLite, tables.Stock}, {jobstest.SQLite, tables.Extended}, {jobstest.MariaDB, tables.Stock},
		{jobstest.MySQL, tables.Extended}, {jobstest.PostgreSQL, tables.Extended}} {
		t.Run(fmt.Sprint(c.engine, " ", c.layout), func(t *testing.T) {
			dsn := newDatabase(t, c.engine, c.layout)
			want(t, call(t, quiet, dsn, "enqueue", "cmsjobs.probe"), 0, "Enqueued job")
			failing := answer[struct{ ID string }](t, call(t, quiet, dsn, "--json", "enqueue", "cmsjobs.probe", "-",
				"--max-attempts", "1"))
			delayed := answer[struct{ ID string }](t, call(t, quiet, dsn, "--json", "enqueue", "cmsjobs.probe",
				"--delay", "2h", "--unique", "k"))
			want(t, call(t, quiet, dsn, "enqueue", "cmsjobs.probe", "--unique", "k"), 0, "there already", delayed.ID)

			want(t, call(t, quiet, dsn, "work", "--stop-when-empty"), 0)
			want(t, call(t, quiet, dsn, "jobs", "show", failing.ID), 0, "from stdin", "failed")
			want(t, call(t, quiet, dsn, "jobs", "list", "--status", "completed"), 0, "cmsjobs.probe", "completed")
			want(t, call(t, quiet, dsn, "jobs", "stats"), 0, "delayed 1", "completed 1", "failed 1")
			want(t, call(t, quiet, dsn, "queue:failed"), 0, failing.ID)
			groups := answer[struct {
				Items []struct{ Cause, Message string }
			}](t, call(t, quiet, dsn, "--json", "failed", "groups")).Items
			if len(groups) != 1 || groups[0].Message != "from stdin" {
				t.Fatalf("groups = %+v", groups)
			}
			want(t, call(t, quiet, dsn, "failed", "retry", "--cause", groups[0].Cause), exitUsage, "would retry 1 job;")
			want(t, call(t, quiet, dsn, "failed", "retry", failing.ID, "--payload", `{"sleep":"1ms"}`), 0, "Enqueued job "+failing.ID)
			want(t, call(t, quiet, dsn, "work", "--stop-when-empty"), 0)
			want(t, call(t, quiet, dsn, "jobs", "show", failing.ID), 0, "completed")

			want(t, call(t, quiet, dsn, "jobs", "cancel", delayed.ID), 0, "cancel: 1 job")
			want(t, call(t, quiet, dsn, "jobs", "cancel", delayed.ID), exitFault, "cancelled")
			want(t, call(t, quiet, dsn, "jobs", "show", "no-such-job"), exitNotFound, "no job has the id")
			want(t, call(t, quiet, dsn, "pause", "default"), 0, "Paused")
			want(t, call(t, quiet, dsn, "enqueue", "cmsjobs.probe", "--queue", "default"), 0)
			want(t, call(t, quiet, dsn, "work", "--stop-when-empty"), 0)
			want(t, call(t, quiet, dsn, "jobs", "list", "--status", "queued"), 0, "paused")
			want(t, call(t, quiet, dsn, "continue", "default"), 0)
			want(t, call(t, quiet, dsn, "continue", "default"), exitNotFound, "not paused")
			want(t, call(t, quiet, dsn, "restart"), 0)
			want(t, call(t, quiet, dsn, "workers"), 0, "No worker")
			want(t, call(t, quiet, dsn, "workers", "stop", "nobody"), exitNotFound)
			want(t, call(t, quiet, dsn, "queue:clean"), 0, "nothing to remove")
			want(t, call(t, quiet, dsn, "migrate", "status"), 0, "applied")
			want(t, call(t, quiet, dsn, "migrate", "down"), exitUsage, "--yes")
			want(t, call(t, quiet, dsn, "migrate", "down", "--yes"), 0)
			want(t, call(t, quiet, dsn, "migrate", "up"), 0)
			want(t, call(t, quiet, dsn, "migrate", "up"), 0)
		})
	}
}

func TestManyFailedJobsAreRetriedForgottenAndPruned(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	exports := t.TempDir()
	for range 12 {
		want(t, call(t, nil, dsn, "enqueue", "cmsjobs.probe", `{"fail":"no luck"}`, "--max-attempts", "1"), 0)
	}
	work := func() { want(t, call(t, nil, dsn, "work", "--stop-when-empty"), 0) }
	work()
	want(t, call(t, nil, dsn, "queue:retry", "all"), 0, "retry: 12 jobs")
	work()
	want(t, callAt(t, 31*24*time.Hour, nil, dsn, "clean", "--dry-run"), 0,
		"12 old failed jobs would be written to a file and deleted.", "does not count ticks")
	want(t, callAt(t, 31*24*time.Hour, nil, dsn, "clean", "--dry-run", "--json"), 0, `"failed":12`)
	want(t, callAt(t, 31*24*time.Hour, nil, dsn, "failed", "prune", "--dry-run"), 0,
		"12 failed jobs older than ", " UTC would be written to a file and deleted.")
	want(t, call(t, nil, dsn, "failed", "prune", "--older", "30d"), 0, "No failed jobs are older")
	r := callAt(t, 31*24*time.Hour, nil, dsn, "--json", "--set", "queue.export_dir="+exports, "failed", "prune")
	pruned := answer[struct {
		Deleted int
		Export  string
	}](t, r)
	text, err := os.ReadFile(pruned.Export)
	if err != nil || pruned.Deleted != 12 || strings.Count(string(text), "no luck") < 12 ||
		bytes.Count(text, []byte("\n")) != 12 {
		t.Errorf("pruned %+v, %v, exported %s", pruned, err, text)
	}
	want(t, call(t, nil, dsn, "failed", "list"), 0, "No jobs.")
	want(t, call(t, nil, dsn, "queue:flush"), 0, "delete: 0 jobs")
}

func TestExitCodesSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	for _, c := range []struct {
		name string
		env  []string
		args []string
		code int
		says string
	}{
		{"an unknown command", nil, []string{"wrok"}, exitUsage, "did you mean work?"},
		{"an unknown subcommand", nil, []string{"jobs", "lst"}, exitUsage, "did you mean list or log?"},
		{"an unknown flag", nil, []string{"work", "--fast"}, exitUsage, "unknown flag"},
		{"too many words", nil, []string{"version", "please"}, exitUsage, "version takes no arguments; given: 1"},
		{"no words", nil, []string{"enqueue"}, exitUsage, "write cmsjobs enqueue TYPE [PAYLOAD]; arguments given: 0"},
		{"no database", nil, []string{"jobs", "list"}, exitUsage, "no database is configured"},
		{"a fault in the configuration", []string{"CMSJOBS_QUEUE_POLL=often"}, []string{dsn, "jobs", "list"},
			exitUsage, "not a length of time"},
		{"no such file", nil, []string{"--config", "/no/such.yaml", "config", "check"}, exitUsage,
			"no configuration file"},
		{"nobody listens", nil, []string{"--dsn", "mysql://root@127.0.0.1:1/x", "jobs", "list"}, exitDatabase,
			"nobody listens"},
		{"no SQLite file", nil, []string{"--dsn", "sqlite:/no/such.sqlite", "jobs", "list"}, exitDatabase,
			"no SQLite database"},
		{"an unknown type", nil, []string{dsn, "enqueue", "sitemap.generat"}, exitUsage, "Known are"},
		{"a payload that is no object", nil, []string{dsn, "enqueue", "cmsjobs.probe", "[1]"}, exitUsage,
			"JSON object"},
		{"a payload that the handler refuses", nil, []string{dsn, "enqueue", "cmsjobs.probe", `{"sleep":"long"}`},
			exitUsage, "sleep must be"},
		{"an unknown status", nil, []string{dsn, "jobs", "list", "--status", "lost"}, exitUsage, "No status"},
		{"nothing named to cancel", nil, []string{dsn, "jobs", "cancel"}, exitUsage, "name the jobs"},
		{"a bad cursor", nil, []string{dsn, "jobs", "list", "--cursor", "?"}, exitFault, "no cursor"},
		{"an override of an unknown type", nil, []string{dsn, "--set", "types.shop.sync.limit=2", "jobs", "list"},
			exitUsage, "shop.sync"},
	} {
		t.Run(c.name, func(t *testing.T) { want(t, call(t, c.env, c.args...), c.code, c.says) })
	}
}

func TestExitCodes(t *testing.T) {
	for code, err := range map[int]error{
		0: nil, exitFault: errors.New("x"), exitUsage: fmt.Errorf("a: %w", app.Usagef("x")),
		exitDatabase: fmt.Errorf("a: %w", app.DatabaseError{Err: errors.New("x")}),
		exitNotFound: fmt.Errorf("a: %w", jobs.ErrNotFound), exitMemory: fmt.Errorf("a: %w", jobs.ErrMemory),
		exitStuck: fmt.Errorf("a: %w", jobs.ErrStuck),
	} {
		if got := exitCode(err); got != code {
			t.Errorf("%v exits with %d, want %d", err, got, code)
		}
		if documented := fmt.Sprintf(" %d ", code); !strings.Contains(exitHelp, documented) {
			t.Errorf("the help has no exit code %d", code)
		}
	}
	if got := exitCode(config.Faults{{Problem: "x"}}); got != exitUsage {
		t.Errorf("faults of the configuration exit with %d", got)
	}
}

// TestProcessesMayStartTogetherOnAFreshDatabase fails when makeTables looks
// only once.
func TestProcessesMayStartTogetherOnAFreshDatabase(t *testing.T) {
	t.Parallel()
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			dsn := newDatabase(t, engine, tables.Stock)
			results := make([]result, 4)
			var together sync.WaitGroup
			for i := range results {
				together.Go(func() { results[i] = call(t, nil, dsn, "jobs", "list") })
			}
			together.Wait()
			for _, r := range results {
				want(t, r, 0, "No jobs.")
			}
		})
	}
}

func TestDisabledJobsRunAtOnce(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	want(t, call(t, []string{"JOBS_ENABLED=false"}, dsn, "enqueue", "cmsjobs.probe"), 0, "Ran cmsjobs.probe at once",
		"The probe ended well at attempt 1.")
	want(t, call(t, []string{"JOBS_ENABLED=false"}, dsn, "enqueue", "cmsjobs.probe", `{"fail":"no"}`), exitFault, "no")
	// Both have left a run, and the failed one can be retried.
	want(t, call(t, nil, dsn, "jobs", "list"), 0, "completed", "failed")
	want(t, call(t, nil, dsn, "failed", "list"), 0, "cmsjobs.probe", "no")
	want(t, call(t, []string{"JOBS_ENABLED=false"}, dsn, "enqueue", "cmsjobs.probe", "--delay", "1h"), exitUsage,
		"none can wait")
}

func TestConfigShowSaysWhereValuesComeFrom(t *testing.T) {
	r := call(t, []string{"CMSJOBS_MAIL_PASSWORD=geheim-geheim", "JOBS_POLL_INTERVAL_MS=1000"}, "config", "show",
		"--json")
	values := answer[[]config.Value](t, r)
	if strings.Contains(r.out, "geheim") {
		t.Error("a secret is shown")
	}
	i := slices.IndexFunc(values, func(v config.Value) bool { return v.Path == "queue.poll" })
	if i < 0 || values[i].Value != "1s" || values[i].Origin != "environment JOBS_POLL_INTERVAL_MS" {
		t.Errorf("queue.poll = %+v", values)
	}
	want(t, call(t, nil, "config", "check"), 0, "no fault")
	want(t, call(t, []string{"CMSJOBS_QUEUE_LEASE=x", "CMSJOBS_LOG_LEVEL=y"}, "config", "check"), exitUsage, "2 faults")
}

func TestTheDemoDoesEveryJob(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "site")
	r := call(t, []string{"CMSJOBS_DATABASE_DSN=sqlite:/the/users/own"}, "demo", "--once", "--json", "--dir", dir,
		"--set", "queue.memory=8GiB") // as in callAt
	want(t, r, 0)
	// The answer follows nothing else on standard output.
	got := answer[struct {
		Jobs   []demo.Outcome
		Files  []demo.File
		Failed int
	}](t, r)
	if got.Failed != 0 || len(got.Jobs) < 9 {
		t.Fatalf("%+v", got)
	}
	kinds := map[string]int{}
	for _, j := range got.Jobs {
		kinds[j.Type]++
		if j.Status != "completed" || j.Attempts != 1 {
			t.Errorf("%+v", j)
		}
	}
	if kinds["sitemap.generate"] != 1 || kinds["media.processImage"] != 6 || kinds["mail.send"] != 1 {
		t.Errorf("types: %v", kinds)
	}
	for _, must := range []string{"public/sitemap.xml", "public/blog-posts.xml",
		"public/storage/photos/harbour-1-150x150.jpg", "mails/"} {
		if !slices.ContainsFunc(got.Files, func(f demo.File) bool { return strings.HasPrefix(f.Path, must) }) {
			t.Errorf("%s was not written: %v", must, got.Files)
		}
	}
	posts, err := os.ReadFile(filepath.Join(dir, "public", "blog-posts.xml"))
	// 300 posts, of which every twentieth is a draft and one is dated ahead.
	if n := bytes.Count(posts, []byte("<loc>")); err != nil || n != 284 {
		t.Errorf("blog-posts.xml has %d addresses, %v", n, err)
	}
	want(t, call(t, nil, "--cms", dir, "doctor"), 0, "can run here")
	want(t, call(t, nil, "--cms", dir, "jobs", "list", "--limit", "50"), 0, "sitemap.generate", `App\Jobs\SendInvoice`,
		`App\Jobs\ImportProducts`)
	want(t, call(t, nil, "--cms", dir, "batches", "list"), 0, "Import of products")
	want(t, call(t, nil, "--cms", dir, "failed", "list"), 0, "RuntimeException: Line 118 of supplier-4.csv")
	// It has a past of 30 days: failures of several causes, and what the timetable did.
	want(t, call(t, nil, "--cms", dir, "failed", "groups"), 0, "9 ", "answered 503 Servi", "unknown format",
		"550 5.1.1 mailbox")
	nights := call(t, nil, "--cms", dir, "jobs", "list", "--type", "backup.generate", "--limit", "60", "--json")
	if n := strings.Count(nights.out, `"result"`); n < 28 || !strings.Contains(nights.out, `"partial"`) {
		t.Errorf("%d backups in 30 days, one of them partial: %.300s", n, nights.out)
	}
	want(t, call(t, nil, "--cms", dir, "jobs", "list", "--type", "sitemap.indexnow", "--since", "30d", "--limit", "90",
		"--json"), 0, `"status":202`)
	want(t, call(t, nil, "--cms", dir, "schedule", "change", "backup.generate", "--cron", "30 4 * * *"), 0, "30 4 * * *",
		"04:30 UTC")
	want(t, call(t, nil, "--cms", dir, "schedule", "change", "backup.generate", "--cron", "30 4 * *"), exitUsage,
		`"30 4 * *" is no cron expression`)
	want(t, call(t, nil, "--cms", dir, "schedule", "change", "backup.generate"), exitUsage, "--cron EXPRESSION, or --reset")
	want(t, call(t, nil, "--cms", dir, "schedule", "list"), 0, "30 4 * * *")
	want(t, call(t, nil, "--cms", dir, "schedule", "change", "backup.generate", "--reset"), 0, "03:00 UTC")
	want(t, call(t, nil, "--cms", dir, "schedule", "change", "no.such", "--reset"), exitNotFound, "no.such")
	for flag, value := range map[string]string{"--tag": `App\Models\Order:1042`, "--worker": "web2"} {
		r := call(t, nil, "--cms", dir, "jobs", "list", "--limit", "500", "--json", flag, value)
		list := answer[struct{ Items []map[string]any }](t, r)
		for _, item := range list.Items {
			if text := fmt.Sprint(item); !strings.Contains(text, value) {
				t.Errorf("%s %s lists %s", flag, value, text)
			}
		}
		if len(list.Items) == 0 || flag == "--tag" && len(list.Items) != 1 {
			t.Errorf("%s %s lists %d jobs", flag, value, len(list.Items))
		}
	}
	if again := asProcess(t, "demo", "--once", "--dir", dir); !strings.Contains(again, "completed") {
		t.Errorf("the second time, on the same site: %s", again)
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, call(t, nil, "demo", "--once", "--fresh", "--dir", full), exitUsage, "holds something else")
}

func TestDoctorFindsWhatIsBroken(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	want(t, call(t, nil, dsn, "enqueue", "cmsjobs.probe", "--queue", "forgotten"), 0)
	want(t, call(t, nil, dsn, "enqueue", "shop.sync", "--force"), 0)
	want(t, call(t, nil, dsn, "pause", "mail", "--force"), 0)
	r := call(t, nil, dsn, "doctor")
	want(t, r, 0, `no worker listens`, "forgotten", `"shop.sync"`, "mail is paused", "no worker runs", "cms.dir",
		"migrate index")
	found := answer[[]doctor.Finding](t, call(t, nil, dsn, "doctor", "--json"))
	for _, f := range found {
		if f.Status != doctor.OK && f.Status != doctor.Warn && f.Status != doctor.Fail || f.What == "" ||
			f.Check == "" {
			t.Errorf("%+v", f)
		}
		if f.Status == doctor.Fail && f.Fix == "" {
			t.Errorf("%s is broken and nothing says how to fix it", f.Check)
		}
	}
	want(t, call(t, nil, "--dsn", "mysql://root@127.0.0.1:1/x", "doctor"), exitDatabase, "fail", "nobody listens")
}

func TestDoctorOnEveryDatabase(t *testing.T) {
	t.Parallel()
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			want(t, call(t, nil, newDatabase(t, engine, tables.Stock), "doctor"), 0, "durability", "ok    rights")
			want(t, call(t, nil, newDatabase(t, engine, tables.Extended), "doctor"), 0, "extended layout",
				"ok    rights")
		})
	}
}

// TestHelp keeps every command's help as people read it.
func TestHelp(t *testing.T) {
	a := &commandLine{Process: app.Process{Err: &bytes.Buffer{}, Now: time.Now}, out: &bytes.Buffer{}}
	root := a.root()
	var text strings.Builder
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Name() == "help" || c.Hidden { // hidden ones are not for people
			return
		}
		if c.Example == "" || c.Short == "" {
			t.Errorf("%q has no example or says not what it does", c.CommandPath())
		}
		fmt.Fprintf(&text, "=== %s\n", c.CommandPath())
		var out bytes.Buffer
		c.SetOut(&out)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		text.WriteString(out.String())
		children := c.Commands()
		slices.SortFunc(children, func(x, y *cobra.Command) int { return strings.Compare(x.Name(), y.Name()) })
		for _, child := range children {
			visit(child)
		}
	}
	visit(root)
	got := regexp.MustCompile(`(?m)[ \t]+$`).ReplaceAllString(text.String(), "")
	testgolden.Check(t, filepath.Join("testdata", "help.golden"), []byte(got))
}

// A bar of bytes says how many MiB are done of how many, and what is at work. It is drawn ten times a
// second at most.
func TestABackupShowsItsProgressInSizes(t *testing.T) {
	var out bytes.Buffer
	a := &commandLine{Process: app.Process{Err: &out, Now: time.Now, StderrIsTTY: true}, out: &bytes.Buffer{}}
	set, end := a.backupProgress()
	set(catalog.Step{Total: 8 << 20, Note: "the estimate"})
	want := regexp.MustCompile(`database: posts, 500 rows so far  25% \|[^|]*\| \(2\.0/8\.0 MiB, `)
	for deadline := time.Now().Add(time.Minute); !want.MatchString(out.String()); {
		if time.Now().After(deadline) {
			t.Fatalf("the bar does not show its sizes: %q", out.String())
		}
		set(catalog.Step{Done: 2 << 20, Total: 8 << 20, Note: "database: posts, 500 rows so far"})
	}
	end()
	if !strings.HasPrefix(out.String(), "the estimate\n") {
		t.Errorf("the estimate does not come first: %.100q", out.String())
	}
}
