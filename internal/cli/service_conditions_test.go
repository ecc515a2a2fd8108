package cli

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/conditions"
	"github.com/cmsjobs/cmsjobs/internal/doctor"
	"github.com/cmsjobs/cmsjobs/internal/jobs/breaker"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// TestConditionsAreSeenEverywhere provokes each condition and sees it in
// doctor's exit code, /readyz, the page, a metric, a firing alert rule and a
// notification, and sees it gone from all of them after the repair.
func TestConditionsAreSeenEverywhere(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts and kills services")
	}
	for _, engine := range []jobstest.Engine{jobstest.SQLite, jobstest.MySQL} {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			l := newConditionsLab(t, engine)
			var provoked []string
			for _, batch := range [][]provocation{l.whileWorking(), l.withoutWorkers(), l.clock(), l.readOnly(),
				l.down()} {
				for _, p := range batch {
					provoked = append(provoked, p.name)
				}
				l.run(batch)
			}
			for _, name := range conditions.Names() {
				// a file has no server
				onServer := name == conditions.DatabaseDown || name == conditions.DatabaseReadOnly
				if !slices.Contains(provoked, name) && (engine == jobstest.MySQL || !onServer) {
					t.Errorf("nothing provokes %s", name)
				}
			}
		})
	}
}

// provocation makes one condition hold, and end.
type provocation struct {
	name             string
	provoke, restore func()
	// blind are surfaces that cannot be asked while it holds: without a database
	// nobody can sign in.
	blind []string
}

// conditionsLab is a site with two processes: web shows, back works and schedules.
type conditionsLab struct {
	t         *testing.T
	engine    jobstest.Engine
	db        *jobstest.Database
	server    *jobstest.Server // its own MySQL
	disk      string           // its own small disk: backups go there
	temporary string
	config    string
	flag      string
	web, back *service
	told      *listener
	promtool  string // what Prometheus's own tool said last
}

func newConditionsLab(t *testing.T, engine jobstest.Engine) *conditionsLab {
	t.Helper()
	l := &conditionsLab{t: t, engine: engine, temporary: t.TempDir(), told: newListener(t)}
	l.disk = smallDisk(t)
	l.openDatabase()
	l.config = fmt.Sprintf(`http: {public_metrics: true, admin_password: secret}
queue: {concurrency: 4, poll: 500ms, lease: 30s, internal_rows: [cmsjobs.probe]}
types: {cmsjobs.probe: {limit: 1}}
schedule: {entries: {queue.clean: {enabled: false}, cache.clearExpired: {cron: "* * * * *"}}} # queue.clean would release the stalled job
backup: {dir: %q, free_space: 1MiB}
notify: {mail: false, cms: false, channels: [{type: generic, url: "%s/notify"}]}
webhook: {allow_private: [127.0.0.0/8]}
conditions:
  every: 1s
  ping_url: "%s/ping"
  ping_every: 1s
  limits: {writes_failing: 2s, disk_full: 4MiB, no_worker: 1s, queue_unattended: 1s, job_overdue: 2s, stalled_jobs: 1s, unknown_jobs: 1s, no_scheduler: 15s,
    circuit_open: 2s, queue_growing: "50", history_growing: "1000", temp_databases_left: 2s%%s}
`, l.disk, l.told.URL, l.told.URL)
	l.start("")
	return l
}

// smallDisk is a file system of 64 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", dir).CombinedOutput(); err != nil {
		jobstest.Skip(t, "a small disk needs root: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("%v %s", err, out)
		}
	})
	return dir
}

func (l *conditionsLab) openDatabase() {
	l.t.Helper()
	if l.engine == jobstest.SQLite {
		l.db = jobstest.Open(l.t, jobstest.SQLite)
		path := jobstest.SQLiteFile(l.db.DSN)
		l.flag = "--dsn=sqlite:" + path
	} else {
		l.server = jobstest.OwnMySQL(l.t)
		root := l.server.RootMySQL(l.t)
		for _, statement := range []string{"CREATE DATABASE site", "CREATE USER cms@'%' IDENTIFIED BY 'cms'",
			"GRANT ALL ON site.* TO cms@'%'", "GRANT ALL ON `cmsjobs\\_verify\\_%`.* TO cms@'%'"} {
			if _, err := root.Exec(statement); err != nil {
				l.t.Fatal(err)
			}
		}
		db, err := sqlx.Open("mysql", l.server.MySQLDSN("site"))
		if err != nil {
			l.t.Fatal(err)
		}
		l.t.Cleanup(func() { db.Close() })
		l.db = &jobstest.Database{DB: db}
		l.flag = fmt.Sprintf("--dsn=mysql://cms:cms@127.0.0.1:%d/site", l.server.Port)
	}
	if _, err := tables.CreateTables(l.t.Context(), l.db.DB, tables.Stock, ""); err != nil {
		l.t.Fatal(err)
	}
}

// start starts both processes; limits are more of them.
func (l *conditionsLab) start(limits string) {
	l.t.Helper()
	l.web = l.process(limits, "CMSJOBS_QUEUE_WORKER=false", "CMSJOBS_SCHEDULE_ENABLED=false")
	l.web.start()
	l.startBack(limits)
}

func (l *conditionsLab) startBack(limits string) {
	l.t.Helper()
	l.back = l.process(limits, "CMSJOBS_HTTP_ENABLED=false")
	l.back.launch()
}

func (l *conditionsLab) process(limits string, env ...string) *service {
	s := newService(l.t, fmt.Sprintf(l.config, limits), l.flag)
	s.env = append(append(s.env, "TMPDIR="+l.temporary, "SSL_CERT_FILE="+l.told.certificate), env...)
	return s
}

// kill ends a process as kill -9 does.
func (l *conditionsLab) kill(s *service) {
	l.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		l.t.Fatal(err)
	}
	<-s.done
	_ = s.cmd.Wait() // it was killed
}

func (l *conditionsLab) exec(statement string, args ...any) {
	l.t.Helper()
	if _, err := l.db.Exec(l.db.Rebind(statement), args...); err != nil {
		l.t.Fatalf("%s: %v", statement, err)
	}
}

// job inserts a row of the jobs table.
func (l *conditionsLab) job(queue, payload string, due time.Duration, reserved any) {
	l.t.Helper()
	now := time.Now().Unix()
	l.exec("INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at) VALUES (?, ?, 0, ?, "+
		"?, ?)", queue, payload, reserved, now+int64(due.Seconds()), now)
}

func (l *conditionsLab) remove(queue string) func() {
	return func() { l.exec("DELETE FROM jobs WHERE queue = ?", queue) }
}

// lock writes a row of cmsjobs_backup_locks whose holder is dead.
func (l *conditionsLab) lock(name, purpose string) {
	l.exec("INSERT INTO cmsjobs_backup_locks (name, holder, host, purpose, started_at, expires_at) VALUES (?, '', "+
		"'gone', ?, ?, 0)",
		name, purpose, time.Now().UnixMilli())
}

func (l *conditionsLab) unlock(name string) {
	l.exec("DELETE FROM cmsjobs_backup_locks WHERE name = ?", name)
}

const deadVerification = "temporary:mysql@0123456789abcdef/cmsjobs_verify_abcdefghijkl"

const probeJob = `{"type":"cmsjobs.probe","data":{}}`

// whileWorking are conditions of a site whose processes all live.
func (l *conditionsLab) whileWorking() []provocation {
	filler := filepath.Join(l.disk, "filler")
	ps := []provocation{
		{name: conditions.QueueUnattended, provoke: func() { l.job("nobody", probeJob, -time.Minute, nil) },
			restore: l.remove("nobody")},
		{name: conditions.UnknownJobs, provoke: func() {
			l.job("unknown", `{"type":"nosuch.type"}`, -time.Minute, nil)
		}, restore: l.remove("unknown")},
		{name: conditions.StalledJobs, provoke: func() {
			l.job("stalled", probeJob, -time.Hour, time.Now().Add(-30*time.Minute).Unix())
		}, restore: l.remove("stalled")},
		{name: conditions.QueueGrowing, provoke: func() {
			for range 60 {
				l.job("later", probeJob, time.Hour, nil)
			}
		}, restore: l.remove("later")},
		{name: conditions.FailureRate, provoke: func() {
			for range 12 {
				l.job("cmsjobs", `{"type":"cmsjobs.probe","maxTries":1,"data":{"fail":"no luck"}}`, 0, nil)
			}
			l.until("12 runs to fail", func() bool {
				return l.count("SELECT COUNT(*) FROM cmsjobs_runs WHERE outcome "+
					"= 'failed'") >= 12
			})
		}, restore: func() { l.exec("DELETE FROM cmsjobs_runs") }},
		{name: conditions.HistoryGrowing, provoke: func() {
			values := strings.TrimSuffix(strings.Repeat("(0, 'u', 'k', 'q', 1, 'released', 'w', 'l', 1, 1, 1), ",
				1100), ", ")
			l.exec("INSERT INTO cmsjobs_runs (job_id, uuid, type, queue, attempt, outcome, worker, lease, ended_at, " +
				"duration_ms, wait_ms) VALUES " + values)
		}, restore: func() { l.exec("DELETE FROM cmsjobs_runs") }},
		{name: conditions.JobOverdue, provoke: func() {
			for range 5 { // one runs, the limit of its type keeps the others waiting, however slow the machine is
				l.job("cmsjobs", `{"type":"cmsjobs.probe","data":{"sleep":"230s"}}`, 0, nil)
			}
		}, restore: func() {
			l.web.command("jobs", "cancel", "--type", "cmsjobs.probe", "--status", "queued,processing", "--yes")
		}},
		{name: conditions.PHPWorker, provoke: func() {
			l.exec("INSERT INTO failed_jobs (uuid, connection, queue, payload, exception, failed_at) VALUES "+
				"('by-php', 'database', 'cmsjobs', ?, ?, ?)",
				`{"uuid":"by-php","displayName":"cmsjobs.probe","job":"cmsjobs.probe","type":"cmsjobs.probe","data":{}}`,
				`Illuminate\Contracts\Container\BindingResolutionException: Target class [cmsjobs.probe] does not exist. in /var/www/site/vendor/laravel/framework/src/Illuminate/Container/Container.php:946`, time.Now().UTC().Format(time.DateTime))
		}, restore: func() { l.exec("DELETE FROM failed_jobs") }},
		{name: conditions.CircuitOpen, provoke: func() {
			b := breaker.New(l.db.DB, breaker.Config{})
			for range 10 {
				if err := b.Record(l.t.Context(), "smtp:mail.example.com:25",
					fmt.Errorf("connection refused")); err != nil {
					l.t.Fatal(err)
				}
			}
		}, restore: func() { l.web.command("breakers", "reset", "smtp:mail.example.com:25") }},
		{name: conditions.NoBackup, provoke: func() {
			l.exec("UPDATE cmsjobs_conditions SET changed_at = changed_at - ? WHERE name = '(installed)'",
				(40 * 24 * time.Hour).Milliseconds())
		}, restore: func() {
			os.Remove(filler) // or there is no space for it
			l.web.command("backup", "create", "--only-database")
		}},
		// with no_backup: a new backup is verified
		{name: conditions.VerificationOld, provoke: func() {}, restore: func() {}},
		{name: conditions.RestoreUnfinished, provoke: func() {
			// It cannot be rolled back: one of its folders is not configured any more.
			l.exec("INSERT INTO cmsjobs_backup_restores (id, backup_id, host, phase, started_at, detail) VALUES ('lab', "+
				"'20260101-000000', 'gone', 'loading', ?, ?)", time.Now().UnixMilli(),
				`{"files":["gone"],"set":{"id":"lab"}}`)
		}, restore: func() { l.exec("DELETE FROM cmsjobs_backup_restores") }},
		{name: conditions.LogNotArchived, provoke: func() {
			l.lock("log-trouble", "the server removed its log before it was archived")
		}, restore: func() { l.unlock("log-trouble") }},
		{name: conditions.WritesFailing, provoke: func() {
			l.exec("ALTER TABLE cmsjobs_processes RENAME TO cmsjobs_lost")
		}, restore: func() { l.exec("ALTER TABLE cmsjobs_lost RENAME TO cmsjobs_processes") }},
		{name: conditions.DiskFull, provoke: func() {
			if out, err := exec.Command("fallocate", "-l", "62M", filler).CombinedOutput(); err != nil {
				l.t.Fatalf("%v %s", err, out)
			}
		}, restore: func() { os.Remove(filler) }},
		// The row of a verification that was killed, in whose name its temporary database lies.
		{name: conditions.TempDatabasesLeft, provoke: func() {
			l.lock(deadVerification, "the verification of 20260101-000000")
		}, restore: func() { l.unlock(deadVerification) }},
	}
	return ps
}

// withoutWorkers kills the process that works and schedules; the page goes on.
func (l *conditionsLab) withoutWorkers() []provocation {
	return []provocation{
		{name: conditions.NoWorker, provoke: func() {
			l.until("a ping while all is well", func() bool { return l.told.pings() > 0 })
			l.kill(l.back)
			l.exec("UPDATE cmsjobs_workers SET heartbeat_at = heartbeat_at - 60000") // a minute passes
			l.job("cmsjobs", probeJob, 0, nil)
			l.pingsStop()
		}, restore: func() {
			l.startBack("")
			before := l.told.pings()
			l.until("the pings to go on", func() bool { return l.told.pings() > before })
		}},
		{name: conditions.NoScheduler, provoke: func() {}, restore: func() {}},
		{name: conditions.ScheduleOverdue, provoke: func() {
			l.exec("DELETE FROM cmsjobs_ticks")
			at := time.Now().Add(-2 * time.Hour).UnixMilli()
			l.exec("INSERT INTO cmsjobs_ticks (entry, tick, at, uuid, outcome, note) VALUES ('cache.clearExpired', "+
				"?, ?, 'u', 'enqueued', '')", at, at)
		}, restore: func() {}}, // the scheduler makes up for it
	}
}

// pingsStop waits until the service has evaluated twice and pinged no more.
func (l *conditionsLab) pingsStop() {
	l.t.Helper()
	l.until("no_worker", func() bool { return l.metric(conditions.NoWorker) == "1" })
	beat := func() int64 { return l.count("SELECT MAX(heartbeat_at) FROM cmsjobs_processes") }
	next := beat()
	for range 2 {
		last := next
		l.until("the next evaluation", func() bool { next = beat(); return next > last })
	}
	pings, last := l.told.pings(), next
	for range 3 {
		l.until("the next evaluation", func() bool { next = beat(); return next > last })
		last = next
	}
	if now := l.told.pings(); now != pings {
		l.t.Errorf("without a worker the monitor was called %d times", now-pings)
	}
}

// clock lets the smallest difference of clocks count.
func (l *conditionsLab) clock() []provocation {
	return []provocation{{name: conditions.ClockJump,
		provoke: func() { l.web.stop(); l.back.stop(); l.start(", clock_jump: 0s") },
		restore: func() { l.web.stop(); l.back.stop(); l.start("") }}}
}

// readOnly makes the server refuse writes.
func (l *conditionsLab) readOnly() []provocation {
	if l.server == nil {
		return nil
	}
	set := func(on int) func() { return func() { l.exec(fmt.Sprintf("SET GLOBAL read_only = %d", on)) } }
	return []provocation{{name: conditions.DatabaseReadOnly, provoke: set(1), restore: set(0)}}
}

// down stops the server.
func (l *conditionsLab) down() []provocation {
	if l.server == nil {
		return nil
	}
	return []provocation{{name: conditions.DatabaseDown, blind: []string{"page"}, provoke: func() {
		if err := l.server.Kill(); err != nil {
			l.t.Log(err) // it says how the server ended
		}
	}, restore: func() {
		if err := l.server.Start(); err != nil {
			l.t.Fatal(err)
		}
	}}}
}

// run provokes a batch, looks, repairs it and looks again.
func (l *conditionsLab) run(batch []provocation) {
	l.t.Helper()
	if len(batch) == 0 {
		return
	}
	for _, p := range batch {
		p.provoke()
	}
	l.look(batch, true)
	for _, p := range batch {
		p.restore()
	}
	l.look(batch, false)
}

func definition(name string) conditions.Definition {
	for _, d := range conditions.List() {
		if d.Name == name {
			return d
		}
	}
	panic("there is no condition " + name)
}

// look asks every surface for every condition of a batch.
func (l *conditionsLab) look(batch []provocation, holds bool) {
	l.t.Helper()
	state := map[bool]string{true: "begin", false: "end"}[holds]
	for _, p := range batch {
		d := definition(p.name)
		for surface, shows := range map[string]func() bool{
			"metric":       func() bool { return l.metric(p.name) == map[bool]string{true: "1", false: "0"}[holds] },
			"readyz":       func() bool { return l.unready(p.name) == holds },
			"page":         func() bool { return strings.Contains(l.page(), d.Title) == holds },
			"notification": func() bool { return l.told.heard(d, holds) },
		} {
			if !slices.Contains(p.blind, surface) {
				l.until(fmt.Sprintf("%s to %s on the surface %s", p.name, state, surface), shows)
			}
		}
	}
	l.until("doctor to say the same", func() bool { return l.doctorSays(batch, holds) })
	l.until("doctor's exit codes", func() bool { return l.exitCodes(batch, holds) })
	program, err := exec.LookPath("promtool")
	if err != nil {
		jobstest.Skip(l.t, "apt-get install prometheus: %v", err)
	}
	l.until("the alerts of the scraped values", func() bool { return l.alerts(program, batch, holds) })
}

func (l *conditionsLab) until(what string, done func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("waited for %s\n%s\nmetrics:\n%s\nheard: %v\npromtool: %s", what, tail(l.web.log()), l.metrics(),
				l.told.all(), l.promtool)
		}
	}
}

func tail(text string) string { return text[max(0, len(text)-6000):] }

func (l *conditionsLab) count(query string) (n int64) {
	l.t.Helper()
	if err := l.db.Get(&n, query); err != nil {
		l.t.Fatal(err)
	}
	return n
}

var conditionLine = regexp.MustCompile(`(?m)^cmsjobs_condition\{name="(\w+)",severity="\w+"\} (\d)$`)

func (l *conditionsLab) metrics() string {
	_, text := l.web.try("GET", "/metrics", "", nil)
	return strings.Join(conditionLine.FindAllString(string(text), -1), "\n")
}

func (l *conditionsLab) metric(name string) string {
	for _, m := range conditionLine.FindAllStringSubmatch(l.metrics(), -1) {
		if m[1] == name {
			return m[2]
		}
	}
	return ""
}

func (l *conditionsLab) unready(name string) bool {
	status, _ := l.web.try("GET", "/readyz?check="+name, "", nil)
	return status == http.StatusServiceUnavailable
}

func (l *conditionsLab) page() string {
	_, text := l.web.try("GET", "/admin", "", http.Header{"Authorization": {"Basic YWRtaW46c2VjcmV0"}})
	return string(text)
}

// doctor runs the command and returns its findings and exit code.
func (l *conditionsLab) doctor(args ...string) (string, int) {
	c := exec.Command(l.web.cmd.Path, append([]string{l.flag, "--json", "doctor"}, args...)...)
	c.Env = l.web.env
	out, err := c.Output()
	if c.ProcessState == nil {
		l.t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// doctorSays says that its findings name the conditions of a batch, or none.
func (l *conditionsLab) doctorSays(batch []provocation, holds bool) bool {
	out, code := l.doctor()
	if code == exitDatabase && batch[0].name == conditions.DatabaseDown { // it cannot even start
		return holds && strings.Contains(out, "fail")
	}
	if code == exitDatabase && batch[0].name == conditions.DatabaseReadOnly {
		return holds && strings.Contains(out, "read-only")
	}
	var findings []doctor.Finding
	if err := json.Unmarshal([]byte(out), &findings); err != nil {
		l.t.Fatalf("%v in %s", err, out)
	}
	for _, p := range batch {
		want := map[conditions.Severity]string{conditions.Failing: doctor.Fail,
			conditions.Warning: doctor.Warn}[definition(p.name).Severity]
		if slices.ContainsFunc(findings, func(f doctor.Finding) bool {
			return f.Check == p.name && f.Status == want
		}) != holds {
			return false
		}
	}
	return true
}

// exitCodes are those of doctor for the batch together.
func (l *conditionsLab) exitCodes(batch []provocation, holds bool) bool {
	failing := slices.ContainsFunc(batch, func(p provocation) bool {
		return definition(p.name).Severity == conditions.Failing
	})
	if _, code := l.doctor(); (code != 0) != (holds && failing) {
		return false
	}
	_, code := l.doctor("--strict")
	return !holds || code != 0
}

// alerts gives the scraped values to Prometheus's own tool, and says whether it agrees.
func (l *conditionsLab) alerts(program string, batch []provocation, holds bool) bool {
	l.t.Helper()
	rules, err := filepath.Abs(filepath.Join("..", "..", "deploy", "prometheus", "alerts.yml"))
	if err != nil {
		l.t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "rule_files: [%q]\nevaluation_interval: 15s\ntests:\n  - interval: 15s\n    input_series:\n", rules)
	for _, m := range regexp.MustCompile(`(?m)^(cmsjobs_(?:condition|workers|build_info)\S*) (\d+)$`).
		FindAllStringSubmatch(l.scraped(), -1) {
		fmt.Fprintf(&b, "      - {series: '%s', values: '%sx8'}\n", m[1], m[2])
	}
	b.WriteString("    alert_rule_test:\n")
	for _, p := range batch {
		d := definition(p.name)
		fmt.Fprintf(&b, "      - eval_time: 1m30s\n        alertname: %s\n", conditions.AlertName(d.Name))
		if holds {
			fmt.Fprintf(&b, "        exp_alerts: [{exp_labels: {name: %s, severity: %s}, exp_annotations: {summary: "+
				"%q, description: %q}}]\n", d.Name, d.Severity, d.Title, strings.ReplaceAll(d.Fix, "`", "")+".")
		}
	}
	file := filepath.Join(l.t.TempDir(), "alerts_test.yml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		l.t.Fatal(err)
	}
	out, err := exec.Command(program, "test", "rules", file).CombinedOutput()
	l.promtool = string(out)
	return err == nil
}

func (l *conditionsLab) scraped() string {
	_, text := l.web.try("GET", "/metrics", "", nil)
	return string(text)
}

// listener is a chat and an outside monitor.
type listener struct {
	*httptest.Server
	certificate string
	mu          sync.Mutex
	titles      []string
	pinged      int
	lastPinged  time.Time
}

func newListener(t *testing.T) *listener {
	t.Helper()
	l := &listener{certificate: filepath.Join(t.TempDir(), "ca.pem")}
	l.Server = httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if r.URL.Path == "/ping" {
			l.pinged, l.lastPinged = l.pinged+1, time.Now()
			return
		}
		var message struct{ Title string }
		body, _ := io.ReadAll(r.Body)
		if json.Unmarshal(body, &message) == nil {
			l.titles = append(l.titles, message.Title)
		}
	}))
	t.Cleanup(l.Close)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.Certificate().Raw})
	if err := os.WriteFile(l.certificate, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *listener) pings() int { l.mu.Lock(); defer l.mu.Unlock(); return l.pinged }

func (l *listener) lastPing() time.Time { l.mu.Lock(); defer l.mu.Unlock(); return l.lastPinged }

func (l *listener) all() []string { l.mu.Lock(); defer l.mu.Unlock(); return slices.Clone(l.titles) }

// heard says that the last message about a condition says how it is.
func (l *listener) heard(d conditions.Definition, holds bool) bool {
	last := ""
	for _, title := range l.all() {
		if title == d.Title || title == "Over: "+d.Title {
			last = title
		}
	}
	return last == map[bool]string{true: d.Title, false: "Over: " + d.Title}[holds]
}
