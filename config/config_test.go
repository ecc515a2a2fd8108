package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"

	"github.com/cmsjobs/cmsjobs/internal/timespan"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, s Sources) *Loaded {
	t.Helper()
	if s.File == "" {
		s.File = write(t, "empty.yaml", "")
	}
	l, err := Load(s)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return l
}

func TestTheExampleIsTheDefaultsAndNamesEveryKey(t *testing.T) {
	l := load(t, Sources{File: write(t, "example.yaml", string(Example()))})
	if want := Default(); !reflect.DeepEqual(l.Config, want) {
		for i := range reflect.TypeFor[Config]().NumField() {
			got, wanted := reflect.ValueOf(l.Config).Field(i), reflect.ValueOf(want).Field(i)
			if !reflect.DeepEqual(got.Interface(), wanted.Interface()) {
				t.Errorf("%s\n got %+v\nwant %+v", reflect.TypeFor[Config]().Field(i).Name, got, wanted)
			}
		}
	}
	k := koanf.New(slash)
	example, err := yaml.Parser().Unmarshal(Example())
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Load(confmap.Provider(example, ""), nil); err != nil {
		t.Fatal(err)
	}
	for _, f := range schema() {
		if f.index != nil && !k.Exists(f.path) {
			t.Errorf("config.example.yaml does not name %s", dotted(f.path))
		}
	}
}

func TestTheDefaultsAreTheSpecificationsAndHaveNoFault(t *testing.T) {
	r := &report{origins: map[string]string{}}
	c := Default()
	c.check(r)
	if len(r.faults) > 0 {
		t.Error(r.faults)
	}
	q := c.Queue
	if q.Poll != 3*time.Second || q.Concurrency != 1 || q.Memory != 512<<20 ||
		q.PollFirst != 500*time.Millisecond || q.Refresh != 300*time.Second || q.HeartbeatStale != 300*time.Second ||
		q.KeepCompleted != 7*day || q.KeepFailed != 30*day {
		t.Errorf("queue defaults are %+v", q)
	}
}

func TestEveryLayerWinsOverTheOneBelow(t *testing.T) {
	dir := t.TempDir()
	env := "DB_CONNECTION=mysql\nDB_HOST=db\nDB_DATABASE=site\nDB_USERNAME=u\nDB_PASSWORD='p@:/w'\nDB_PREFIX=bb_\nAPP_URL=https://a.example/\nDB_QUEUE_RETRY_AFTER=60\n"
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(env), 0o600); err != nil {
		t.Fatal(err)
	}
	yamlText := "cms: {dir: " + dir + "}\nqueue: {poll: 9s, poll_first: 8s, refresh: 7s, worker_id: yaml}\ndatabase: " +
		"{prefix: fromyaml_}\n"
	l := load(t, Sources{
		File: write(t, "c.yaml", yamlText),
		Environ: []string{"JOBS_POLL_INTERVAL_MS=8500", "JOBS_WORKER_ID=spec", "QUEUE_JOB_ROTATE_COMPLETE_DAYS=3",
			"CMSJOBS_QUEUE_WORKER_ID=own", "PATH=/bin"},
		Flags: []Flag{{"queue.refresh", "6s", "--set"}},
	})
	for _, c := range []struct {
		path, text, origin string
	}{
		{"queue.refresh", "6s", "flag --set"},
		{"queue.worker_id", "own", "environment CMSJOBS_QUEUE_WORKER_ID"},
		{"queue.poll", "8.5s", "environment JOBS_POLL_INTERVAL_MS"},
		{"queue.keep_completed", "3d", "environment QUEUE_JOB_ROTATE_COMPLETE_DAYS"},
		{"queue.poll_first", "8s", "file " + l.File},
		{"database.prefix", "fromyaml_", "file " + l.File},
		{"database.dsn", "u:******@tcp(db:3306)/site", filepath.Join(dir, ".env") + " DB_*"},
		{"cms.url", "https://a.example", filepath.Join(dir, ".env") + " APP_URL"},
		{"queue.lease", "1m", filepath.Join(dir, ".env") + " DB_QUEUE_RETRY_AFTER"},
		{"queue.memory", "512MiB", "default"},
	} {
		i := slices.IndexFunc(l.Values(), func(v Value) bool { return v.Path == c.path })
		if i < 0 {
			t.Errorf("%s is not shown", c.path)
			continue
		}
		if v := l.Values()[i]; v.Text != c.text || v.Origin != c.origin {
			t.Errorf("%s = %q from %q, want %q from %q", c.path, v.Text, v.Origin, c.text, c.origin)
		}
	}
	if got := l.Database.DSN.Reveal(); got != "u:p@:/w@tcp(db:3306)/site" {
		t.Errorf("dsn = %s", got)
	}
}

func TestTheSpecificationsNamesSetWhatTheyMean(t *testing.T) {
	l := load(t,
		Sources{Environ: []string{"JOBS_ENABLED=false", "JOBS_POLL_INTERVAL_MS=100", "QUEUE_WORKER_REFRESH_INTERVAL=60",
			"QUEUE_WORKER_HEARTBEAT_STALE=120", "QUEUE_JOB_ROTATE_FAILED_DAYS=0", "ENABLE_WORKER=false"}})
	q := l.Queue
	if q.Enabled || q.Worker || q.Poll != 100*time.Millisecond || q.PollFirst != 100*time.Millisecond ||
		q.Refresh != time.Minute ||
		q.HeartbeatStale != 2*time.Minute || q.KeepFailed != 0 {
		t.Errorf("%+v", q)
	}
}

func TestAllFaultsAreReportedAtOnceWithASuggestion(t *testing.T) {
	file := write(t, "bad.yaml", `
queue: {pol: 3s, poll: 3, concurrency: many, lease: 200s}
sitemaps: {gzip: true}
types: {mail.send: {timeout: soon, limits: 2}}
schedule: {entries: {x: {cron: "61 * * * *", policy: never}}}
http: {users: [{name: a, rol: read}]}
log: {level: loud}
`)
	_, err := Load(Sources{File: file, Environ: []string{"CMSJOBS_QUEUE_POOL=1s", "CMSJOBS_DATABASE_DSN_FILE=/no/such"},
		Flags: []Flag{{"queue.concurency", "2", "--set"}}})
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatalf("Load = %v", err)
	}
	for _, want := range []string{
		"queue.pol: no such key; did you mean queue.poll? (file " + file,
		`queue.poll: "3" is not a length of time`,
		`queue.concurrency: "many" is not a whole number`,
		"queue.lease: 3m20s is longer than PHP's retry_after",
		"sitemaps.gzip: no such key; did you mean sitemap.gzip?",
		`"soon" is not a length of time`,
		"types.mail.send.limits: no such key; did you mean types.mail.send.limit?",
		`schedule.entries.x.cron: "61 * * * *" is no cron expression`,
		`schedule.entries.x.policy: "never" is none of skip, once, all`,
		"rol", `log.level: "loud" is none of`,
		"CMSJOBS_QUEUE_POOL, which sets nothing; did you mean CMSJOBS_QUEUE_POLL?",
		"CMSJOBS_DATABASE_DSN_FILE names a file that cannot be read",
		"queue.concurency: no such key; did you mean queue.concurrency? (flag --set)",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not reported: %s", want)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
}

func TestABandwidthIsForPlacesBehindANetwork(t *testing.T) {
	base := "storage: {s3: {bucket: b, access_key: k, secret_key: s}}\nbackup: {to: [local, s3], places: "
	for text, want := range map[string]string{
		"{s3: {bandwidth: 10MiB}}}":    "",
		"{s3: {keep: 3}}}":             "",
		"{s3: {bandwidth: 1KiB}}}":     "connections end",
		"{local: {bandwidth: 10MiB}}}": "backup.throttle",
	} {
		l, err := Load(Sources{File: write(t, "c.yaml", base+text)})
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v", text, err)
		case strings.Contains(text, "10MiB") && want == "" && l.Backup.Places["s3"].Bandwidth != 10<<20:
			t.Errorf("%s: %+v", text, l.Backup.Places)
		}
	}
}

func TestAPasswordIsLongWhereOthersReachThePage(t *testing.T) {
	for _, c := range []struct {
		text string
		good bool
	}{
		{"http: {admin_password: a, listen: '0.0.0.0:80'}", false},
		{"http: {admin_password: a, listen: ':80'}", false},
		{"http: {admin_password: elevenchars, listen: '192.0.2.1:80'}", false},
		{"http: {admin_password: a, proxies: [127.0.0.1]}", false},
		{"http: {users: [{name: jo, password: short, role: viewer}], listen: ':80'}", false},
		{"http: {admin_password: twelve-chars, listen: ':80'}", true},
		{"http: {admin_password: a, listen: '127.0.0.1:80'}", true},
		{"http: {admin_password: a, listen: 'localhost:80'}", true},
		{"http: {admin_password: a, listen: '[::1]:80'}", true},
		{"http: {admin_password: a, listen: ':80', enabled: false}", true},
		{"http: {listen: ':80'}", true},
		{"http: {users: [{name: jo, password: '$2y$10$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZ01234', role: " +
			"viewer}], listen: ':80'}", true},
	} {
		_, err := Load(Sources{File: write(t, "c.yaml", c.text)})
		if (err == nil) != c.good || err != nil && !strings.Contains(err.Error(), "12 characters") {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

func TestKindsAndEntriesAreReadByTheirNames(t *testing.T) {
	l := load(t, Sources{File: write(t, "c.yaml", `
types:
  mail.send: {queue: mail, max_attempts: 5, timeout: 2m, backoff: [60s, 5m], limit: 2}
schedule:
  entries:
    backup: {enabled: false}
    mine: {cron: "0 9 * * 1", type: cache.clear, payload: {tags: [a], deep: {b: 1}}}
`), Flags: []Flag{{"types.sitemap.generate.timeout", "9m", "--set"}}})
	mail := l.Types["mail.send"]
	if mail.Queue != "mail" || mail.MaxAttempts != 5 ||
		!slices.Equal(mail.Backoff, []time.Duration{time.Minute, 5 * time.Minute}) {
		t.Errorf("mail.send = %+v", mail)
	}
	if d := l.Types["sitemap.generate"].Timeout; d != 9*time.Minute {
		t.Errorf("sitemap.generate times out after %s", d)
	}
	if e := l.Schedule.Entries["backup"].Enabled; e == nil || *e {
		t.Error("backup is not switched off")
	}
	if p, _ := json.Marshal(l.Schedule.Entries["mine"].Payload); string(p) != `{"deep":{"b":1},"tags":["a"]}` {
		t.Errorf("payload = %s", p)
	}
}

func TestSecretsShowThemselvesNowhere(t *testing.T) {
	const word = "Sup3rS3cret"
	keyFile := write(t, "key", word+"\n")
	l := load(t, Sources{
		File: write(t, "c.yaml", "http: {users: [{name: u, password: "+word+", role: admin}]}\nnotify: {channels: "+
			"[{type: slack, url: "+word+"}]}\n"),
		Environ: []string{"CMSJOBS_MAIL_PASSWORD=" + word, "CMSJOBS_DATABASE_DSN=root:" + word + "@tcp(h:1)/d",
			"CMSJOBS_STORAGE_S3_SECRET_KEY_FILE=" + keyFile, "CMSJOBS_BACKUP_VERIFY_DSN=postgres://u:" + word +
				"@h/d?sslmode=disable"},
	})
	if l.Storage.S3.SecretKey.Reveal() != word || l.Mail.Password.Reveal() != word {
		t.Fatal("the secrets did not arrive")
	}
	var logged strings.Builder
	logger := slog.New(slog.NewJSONHandler(&logged, nil))
	logger.Info("x", "p", l.Mail.Password, "dsn", l.Database.DSN, "mail", l.Mail)
	shown, err := json.Marshal(l.Values())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"config show": fmt.Sprint(l.Values()), "config show --json": string(shown), "the log": logged.String(),
		"%v": fmt.Sprintf("%v %+v", l.Config, l.Config), "%#v": fmt.Sprintf("%#v", l.Config),
		"%x": fmt.Sprintf("%x %q", l.Mail.Password, l.Mail.Password),
	} {
		if strings.Contains(text, word) || strings.Contains(text, fmt.Sprintf("%x", word)) {
			t.Errorf("%s shows a secret: %s", name, text)
		}
	}
}

func TestDSNsNameTheirDriver(t *testing.T) {
	for dsn, want := range map[DSN]string{
		"u:p@tcp(h:3306)/d": "mysql", "mysql://u:p%40w@h/d?tls=true": "mysql", "mariadb://u@h:3307/d": "mysql",
		"u:p@:/w@unix(/run/s.sock)/d": "mysql",
		"postgres://u:p@h/d":          "pgx", "sqlite:/a/b.sqlite": "sqlite", "file:x.db": "sqlite",
	} {
		if driver, err := dsn.Driver(); driver != want || err != nil {
			t.Errorf("%s is for %q, %v", dsn, driver, err)
		}
	}
	for _, bad := range []DSN{"oracle://x", "sqlite:", "nothing", "mysql:x"} {
		if driver, err := bad.Driver(); err == nil {
			t.Errorf("%q is taken for %s", bad, driver)
		}
	}
}

func TestNamesInTheEnvironmentAreUnambiguous(t *testing.T) {
	seen := map[string]string{}
	for _, f := range schema() {
		name := envName(f.path)
		if other, taken := seen[name]; taken {
			t.Errorf("%s means %s and %s", name, other, f.path)
		}
		seen[name] = f.path
	}
}

func TestDurationsAreReadBackAsTheyAreWritten(t *testing.T) {
	for _, d := range []time.Duration{0, time.Millisecond, 90 * time.Second, 4 * time.Hour, 7 * day, 36*time.Hour +
		time.Second, -time.Hour} {
		if got, err := timespan.Parse(formatDuration(d)); err != nil || got != d {
			t.Errorf("%s is read back as %s, %v", formatDuration(d), got, err)
		}
	}
	for _, bad := range []string{"", "3", "d", "1x", "1d2", "99999999d"} {
		if d, err := timespan.Parse(bad); err == nil {
			t.Errorf("%q is taken for %s", bad, d)
		}
	}
}

func TestAMissingFileThatWasAskedForIsSaid(t *testing.T) {
	if _, err := Load(Sources{File: "/no/such/file.yaml"}); err == nil ||
		!strings.Contains(err.Error(), "no configuration file") {
		t.Errorf("Load = %v", err)
	}
}

func FuzzDSNNeverShowsItsPassword(f *testing.F) {
	f.Add("p@:/w", "host")
	f.Fuzz(func(t *testing.T, password, host string) {
		if len(password) < 6 || strings.ContainsAny(host, "@") || strings.Contains("mysqluser:******tcp()/name",
			password) || strings.Contains(host, password) || strings.ContainsAny(password, "\n") {
			t.Skip()
		}
		if text := DSN("user:" + password + "@tcp(" + host + ")/name").String(); strings.Contains(text, password) {
			t.Errorf("%q shows the password %q", text, password)
		}
	})
}

func ExampleLoad() {
	_, err := Load(Sources{
		Environ: []string{"CMSJOBS_QUEUE_POLLS=1s"},
		Flags:   []Flag{{"queue.memory", "lots", "--memory"}},
	})
	fmt.Println(err)
	// Output:
	// the configuration has 2 faults:
	//   - the environment has CMSJOBS_QUEUE_POLLS, which sets nothing; did you mean CMSJOBS_QUEUE_POLL?
	//   - queue.memory: "lots" is not a number of bytes: write 512MiB, 64KB or 1048576 (flag --memory)
}

func TestMailLimitsAndAgesAreReadByTheirNames(t *testing.T) {
	l := load(t, Sources{File: write(t, "c.yaml", `
mail: {max_age: {welcome: 2h}, rate: {domains: {gmail.com: 20}}}
notify: {channels: [{name: ops, type: slack, url: "https://a.example/x", level: error}]}
`)})
	if a := l.Mail.MaxAge; len(a) != 1 || a["welcome"] != 2*time.Hour {
		t.Errorf("ages are %v", a)
	}
	if l.Mail.Rate.Domains["gmail.com"] != 20 {
		t.Errorf("domains are %v", l.Mail.Rate.Domains)
	}
	if c := l.Notify.Channels; len(c) != 1 || c[0].Name != "ops" || c[0].Level != "error" {
		t.Errorf("channels are %v", c)
	}
}

func TestPHPsQueues(t *testing.T) {
	l := load(t, Sources{File: write(t, "cmsjobs.yaml", `
php:
  enabled: true
  queues: {default: {processes: 2, tries: 0, timeout: 90s}, mail.slow: {memory: 256MiB}, pictures: {processes: 1..8}}
`), Flags: []Flag{{"php.queues.mail.slow.max_jobs", "50", "--set"}}})
	d, m := l.PHP.Queues["default"].Filled(), l.PHP.Queues["mail.slow"].Filled()
	if d.Processes != (Range{2, 2}) || *d.Tries != 0 || *d.Timeout != 90*time.Second || d.Memory != 128<<20 {
		t.Errorf("default is %+v", d)
	}
	if m.Processes != (Range{1, 1}) || *m.Tries != 1 || *m.Timeout != time.Minute || m.Memory != 256<<20 || m.MaxJobs != 50 {
		t.Errorf("mail.slow is %+v", m)
	}
	if p := l.PHP.Queues["pictures"].Processes; p != (Range{1, 8}) || p.String() != "1..8" {
		t.Errorf("pictures has %v processes", p)
	}
	for text, fault := range map[string]string{"0": "no number of processes", "8..1": "no number of processes",
		"1..2000": "processes", "some": "no number of processes"} {
		_, err := Load(Sources{Flags: []Flag{{"php.queues.default.processes", text, "--set"}}})
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%s processes: %v", text, err)
		}
	}
	if _, err := Load(Sources{Flags: []Flag{{"php.processes", "3", "--set"}, {"php.queues.a.processes", "2..4", "--set"},
		{"php.queues.b.processes", "2", "--set"}}}); err == nil || !strings.Contains(err.Error(), "keep 4 at least") {
		t.Errorf("more processes than all may have: %v", err)
	}
}

// A goal is a page or an event, under a name that no other has.
func TestGoalsAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		"[{name: Order, path: /order/*/thanks}, {name: Mail, event: Signup}]": "",
		"[{path: /a}]": "needs a name",
		"[{name: a, path: /a}, {name: a, event: b}]": "two goals",
		"[{name: a}]":                                         "either path or event",
		"[{name: a, path: /a, event: b}]":                     "either path or event",
		"[{name: a, path: a}]":                                "begins with /",
		"[{name: a, path: \"/a?b=1\"}]":                       "ends before ?",
		"[{name: a, event: " + strings.Repeat("e", 65) + "}]": "64 characters",
	} {
		file := filepath.Join(t.TempDir(), "cmsjobs.yaml")
		if err := os.WriteFile(file, []byte("analytics: {goals: "+text+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(Sources{File: file})
		switch {
		case want == "" && (err != nil || len(c.Analytics.Goals) != 2 || c.Analytics.Goals[1].Event != "Signup"):
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
