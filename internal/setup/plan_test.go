package setup

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	owner = Account{Name: "www-data", Group: "www-data", UID: 33, GID: 33}
	host  = Host{Root: true, Account: Account{Name: "root", Group: "root"}, Program: "/root/cmsjobs", Systemd: true,
		Supervisor: true, Crontab: true, Port: 8091, ConfigDir: "/root/.config"}
	site = Site{Dir: "/home/me/my site", Owner: owner, Public: "/home/me/my site/public",
		Logs: "/home/me/my site/storage/logs", Database: "cms", Engine: MySQL, JobsTable: "jobs",
		Tables: []string{"cmsjobs_runs", "jobs", "posts"}}
)

func planned(t *testing.T, h Host, s Site, c Choice) Plan {
	t.Helper()
	p, err := MakePlan(h, s, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func fileOf(t *testing.T, p Plan, path string) string {
	t.Helper()
	i := slices.IndexFunc(p.Files, func(f File) bool { return f.Path == path })
	if i < 0 {
		t.Fatalf("%s is not written: %+v", path, p.Files)
	}
	return p.Files[i].Text
}

func holds(t *testing.T, text string, pieces ...string) {
	t.Helper()
	for _, piece := range pieces {
		if !strings.Contains(text, piece) {
			t.Errorf("no %q in\n%s", piece, text)
		}
	}
}

func TestTheUnitIsFilledIn(t *testing.T) {
	p := planned(t, host, site, Choice{Way: Systemd, Mail: "o'hara@x.example"})
	unit := fileOf(t, p, "/etc/systemd/system/cmsjobs.service")
	holds(t, unit, "User=www-data\n", "ExecStart=/usr/local/bin/cmsjobs --config /etc/cmsjobs/config.yaml run\n",
		`ReadWritePaths="-/home/me/my site/public" "-/home/me/my site/storage"`, "ProtectHome=no\n",
		`Environment=CMSJOBS_CMS_DIR="/home/me/my site"`)
	if strings.Contains(unit, "/var/www/site") {
		t.Errorf("the example's folder is left:\n%s", unit)
	}
	holds(t, fileOf(t, p, "/etc/cmsjobs/config.yaml"), "dir: '/home/me/my site'", "127.0.0.1:8091",
		"admin: ['o''hara@x.example']")
	if p.Install != "/usr/local/bin/cmsjobs" {
		t.Errorf("the program is installed to %q", p.Install)
	}
	if verify, err := exec.LookPath("systemd-analyze"); err == nil {
		path := filepath.Join(t.TempDir(), "cmsjobs.service")
		text := strings.ReplaceAll(unit, "/usr/local/bin/cmsjobs", "/bin/true")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(verify, "verify", "--man=no", path).CombinedOutput(); err != nil {
			t.Errorf("systemd-analyze: %v\n%s", err, out)
		}
	}
	notes := site.Grants()
	holds(t, notes, "GRANT INSERT, UPDATE, DELETE ON `cms`.`jobs`",
		"GRANT UPDATE (status, updated_at) ON `cms`.`posts`",
		"`cms`.`cmsjobs_runs`")
	if strings.Contains(notes, "media_files") {
		t.Errorf("a table that is not there is granted:\n%s", notes)
	}
}

func TestOtherWays(t *testing.T) {
	holds(t, fileOf(t, planned(t, host, site, Choice{Way: Supervisor, Name: "shop"}),
		"/etc/supervisor/conf.d/shop.conf"),
		"[program:shop]\n", "command=/usr/local/bin/cmsjobs --config /etc/cmsjobs/shop.yaml run\n", "user=www-data\n",
		"directory=/home/me/my site\n")
	holds(t, fileOf(t, planned(t, host, site, Choice{Way: Compose}), "/etc/cmsjobs/cmsjobs.compose.yaml"),
		`user: "33:33"`,
		"'/home/me/my site:/cms'")

	shared := Host{Account: Account{Name: "me", Group: "me", UID: 1000, GID: 1000}, Program: "/home/me/bin/cmsjobs",
		Crontab: true, Port: 8090, ConfigDir: "/home/me/.config"}
	mine := site
	mine.Owner = shared.Account
	if ways := shared.Ways(); !slices.Equal(ways, []Way{Cron, Compose}) {
		t.Errorf("without root there are %v", ways)
	}
	p := planned(t, shared, mine, Choice{Way: Cron})
	if want := "* * * * * /home/me/bin/cmsjobs --config /home/me/.config/cmsjobs/cmsjobs.yaml tick >>'/home/me/my " +
		"site/storage/logs/cmsjobs.log' 2>&1 # cmsjobs setup cmsjobs"; p.CronLine != want {
		t.Errorf("cron runs %s", p.CronLine)
	}
	for name, c := range map[string]struct {
		host   Host
		site   Site
		choice Choice
	}{
		"needs the superuser": {shared, mine, Choice{Way: Systemd}},
		"belong to www-data":  {shared, site, Choice{Way: Cron}},
		"no name":             {host, site, Choice{Way: Systemd, Name: "../x"}},
		"the ways are":        {host, site, Choice{Way: "upstart"}},
		"is not here":         {Host{Root: true, Program: "/x"}, site, Choice{Way: Cron}},
	} {
		if _, err := MakePlan(c.host, c.site, c.choice); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A foreign sitemap and a site without accounts are said.
func TestThePlanSaysWhatIsDifferentHere(t *testing.T) {
	s := site
	s.ForeignSitemap, s.Accounts = "/x/public/sitemap.xml", "there is no table activations"
	p := planned(t, host, s, Choice{Way: Systemd, Password: "geheim"})
	holds(t, strings.Join(p.Notes, "\n"), "/x/public/sitemap.xml was not written by cmsjobs and stays")
	holds(t, p.SignIn, "http.admin_password", "there is no table activations")
	holds(t, fileOf(t, p, p.Config), "admin_password: 'geheim'")
	if i := slices.IndexFunc(p.Files, func(f File) bool { return f.Path == p.Config }); p.Files[i].Mode != 0o600 {
		t.Errorf("others may read the password: %v", p.Files[i].Mode)
	}
}

// crontab is the host's program, as its manual says: -l lists or fails with "no
// crontab", "-" replaces, -r removes.
func crontab(t *testing.T, lines *string) func(context.Context, string, ...string) (string, error) {
	return func(_ context.Context, input string, command ...string) (string, error) {
		switch last := command[len(command)-1]; {
		case command[0] != "crontab":
			return "", nil
		case last == "-l" && *lines == "":
			return "", &exec.Error{Name: "crontab", Err: os.ErrNotExist}
		case last == "-l":
			return *lines, nil
		case last == "-":
			*lines = input
		case last == "-r":
			*lines = ""
		default:
			t.Errorf("ran %v", command)
		}
		return "", nil
	}
}

func TestTheCrontabKeepsItsOtherLines(t *testing.T) {
	p := planned(t, host, site, Choice{Way: Cron})
	const theirs = "MAILTO=me\n* * * * * php artisan schedule:run\n"
	for _, before := range []string{theirs, ""} {
		lines := before
		run := crontab(t, &lines)
		r := Runner{Say: func(string, ...any) {}, Run: func(ctx context.Context, input string, command ...string) (
			string, error) {
			out, err := run(ctx, input, command...)
			if err != nil {
				err = &noCrontab{}
			}
			return out, err
		}}
		for range 2 { // twice makes one line
			if err := r.Start(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		if lines != before+p.CronLine+"\n" {
			t.Errorf("the crontab is\n%s", lines)
		}
		if err := r.Stop(t.Context(), &Record{CronLine: p.CronLine, Account: owner}); err != nil || lines != before {
			t.Errorf("afterwards it is\n%s%v", lines, err)
		}
	}
}

type noCrontab struct{}

func (noCrontab) Error() string { return "no crontab for me" }

// Remove keeps what its owner changed, and undoes an interrupted Apply.
func TestRemoveKeepsWhatWasChanged(t *testing.T) {
	prefix, program := t.TempDir(), filepath.Join(t.TempDir(), "cmsjobs")
	if err := os.WriteFile(program, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	h, s := host, site
	h.Program, s.Owner = program, Account{Name: "me", UID: os.Getuid(), GID: os.Getgid()}
	p := planned(t, h, s, Choice{Way: Systemd, Prefix: prefix})
	var said []string
	r := Runner{Run: Command, Say: func(format string, _ ...any) { said = append(said, format) }}
	if _, err := r.Apply(p, false); err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(prefix, "etc/systemd/system/cmsjobs.service")
	if err := os.WriteFile(unit, []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(prefix, "usr/local/bin/cmsjobs")); err != nil { // never written
		t.Fatal(err)
	}
	record, err := Find(prefix, s.Dir, "cmsjobs", "/etc/cmsjobs")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Remove(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	var left []string
	if err := filepath.WalkDir(prefix, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			left = append(left, path)
		}
		return err
	}); err != nil || !slices.Equal(left, []string{unit}) {
		t.Errorf("left are %v, %v", left, err)
	}
	if !slices.ContainsFunc(said, func(s string) bool { return strings.HasPrefix(s, "kept") }) {
		t.Errorf("said was %q", said)
	}
}

// What PostgreSQL and SQLite do not have is said, and a host without PostgreSQL's programs
// is refused before anything is written: the first backup could not be made there.
func TestThePlanOfOtherDatabases(t *testing.T) {
	s := site
	s.Engine, s.Schema, s.DatabaseAccount, s.Missing = PostgreSQL, "public", `o"dd`, []string{"pg_dump", "psql"}
	s.Sequences = []Sequence{{"jobs", "jobs_id_seq"}, {"posts", "posts_id_seq"}}
	if _, err := MakePlan(host, s, Choice{Way: Systemd}); err == nil ||
		!strings.Contains(err.Error(), "need pg_dump, psql") {
		t.Errorf("without its programs: %v", err)
	}
	s.Missing = nil
	p := planned(t, host, s, Choice{Way: Compose})
	holds(t, strings.Join(p.Notes, "\n"), "on PostgreSQL a restore", "the image has no pg_dump", "migrate feed")
	holds(t, s.Grants(), `FOR ROLE "o""dd" IN SCHEMA "public"`, `GRANT UPDATE (status, updated_at) ON "public"."posts"`,
		`GRANT USAGE ON SEQUENCE "public"."jobs_id_seq"`)
	if strings.Contains(s.Grants(), "posts_id_seq\" TO") {
		t.Errorf("numbers are granted of a table into which nothing is inserted:\n%s", s.Grants())
	}

	s = site
	s.Engine, s.DatabaseFile, s.RollbackJournal = SQLite, "/srv/data/site.sqlite", true
	p = planned(t, host, s, Choice{Way: Compose})
	holds(t, fileOf(t, p, "/etc/cmsjobs/cmsjobs.compose.yaml"), "- '/srv/data:/srv/data'\n")
	holds(t, strings.Join(p.Notes, "\n"), "/srv/data/site.sqlite gets a write-ahead log", "nothing to grant")
	holds(t, fileOf(t, planned(t, host, s, Choice{Way: Systemd}), "/etc/systemd/system/cmsjobs.service"),
		" -/srv/data\n")
	if s.Grants() != "" {
		t.Errorf("for SQLite is granted\n%s", s.Grants())
	}
}
