package backup

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// onServer is a site on a server of the test's own.
func onServer(t *testing.T, server *jobstest.Server, engine jobstest.Engine) *site {
	t.Helper()
	variable := map[jobstest.Engine]string{jobstest.MariaDB: "CMSJOBS_TEST_MARIADB_PORT",
		jobstest.MySQL: "CMSJOBS_TEST_MYSQL_PORT"}[engine]
	t.Setenv(variable, portOf(server))
	jobstest.AsRoot(t) // the only account there
	return newSite(t, engine)
}

func portOf(s *jobstest.Server) string {
	_, rest, _ := strings.Cut(s.MySQLDSN(""), ":")
	port, _, _ := strings.Cut(rest, ")")
	return port
}

func databaseOf(t *testing.T, dsn string) string {
	t.Helper()
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return c.DBName
}

// limited makes an account that may do everything in its database and in scratch
// databases, and nothing else: as of a hosted CMS. It returns its DSN.
func (s *site) limited(t *testing.T) string {
	t.Helper()
	name := databaseOf(t, s.DSN)
	root := s.Root(t)
	root.MustExec("CREATE USER IF NOT EXISTS cms@'%' IDENTIFIED BY 'demo'")
	root.MustExec("GRANT ALL ON " + name + ".* TO cms@'%'")
	root.MustExec("GRANT ALL ON `cmsjobs\\_verify\\_%`.* TO cms@'%'")
	return s.DSNOf(t, "cms", "demo")
}

func (s *site) loadTorture(t *testing.T) {
	t.Helper()
	jobstest.NeedTorture(t, s.Engine)
	sql, err := os.ReadFile("dump/testdata/torture." + string(s.Engine) + ".sql")
	if err != nil {
		t.Fatal(err)
	}
	s.MustExec("DROP TABLE cache")
	c, err := mysql.ParseDSN(s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(c.Addr, ":")
	cmd := exec.Command(plainClient(t, s.Engine), "--no-defaults", "--default-character-set=utf8mb4",
		"--max-allowed-packet=256M", "-h", host, "-P", port, "-u", c.User, c.DBName)
	cmd.Stdin = strings.NewReader(string(sql))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// A server as MySQL's defaults have it: a binary log and GTIDs. With an account that
// may create triggers, everything is verified and restored; the torture database has
// tables without transactions beside the others.
func TestABackupOfAServerWithABinaryLogIsVerified(t *testing.T) {
	server := jobstest.OwnMySQL(t, "--log-bin=binlog", "--gtid-mode=ON", "--enforce-gtid-consistency=ON")
	s := onServer(t, server, jobstest.MySQL)
	s.loadTorture(t)
	h := s.handler(t)
	report, b := s.backup(t, h)
	if p := report.Verification; p.Level != manifest.LevelRestored || !p.OK || p.Note != "" {
		t.Fatalf("%+v", p)
	}
	s.MustExec("DELETE FROM posts")
	q := restore.Request{Backup: b, Database: true, SkipSafety: true}
	q.Confirm = h.Token(q)
	if done, err := h.Restore(t.Context(), q, nil); err != nil || len(done.Problems) > 0 || len(done.Plan.Warnings)+
		len(done.Plan.Refused) > 0 {
		t.Errorf("%+v, %v", done, err)
	}
}

// The file of MySQL's own program restores on the server that it comes from: without
// the GTIDs of that server, which another account could not set there.
func TestMysqldumpOfAServerWithGTIDsIsVerified(t *testing.T) {
	s := onServer(t, jobstest.OwnMySQL(t, "--log-bin=binlog", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"),
		jobstest.MySQL)
	jobstest.PreferMySQLPrograms(t)
	s.c.Options.Tool = "mysqldump"
	report, _ := s.backup(t, s.handler(t))
	if p := report.Verification; p.Level != manifest.LevelRestored || !p.OK || p.Note != "" {
		t.Errorf("%+v", p)
	}
}

// Beside a binary log the CMS's own account may not make a trigger. That is said
// before: by the backup, by its verification, which shows everything else, and by the plan.
func TestATriggerThatCannotBeRestoredIsSaidBefore(t *testing.T) {
	for engine, server := range map[jobstest.Engine]func(testing.TB, ...string) *jobstest.Server{
		jobstest.MariaDB: jobstest.OwnMariaDB, jobstest.MySQL: jobstest.OwnMySQL} {
		t.Run(string(engine), func(t *testing.T) {
			s := onServer(t, server(t, "--log-bin=binlog"), engine)
			s.MustExec("CREATE TRIGGER told BEFORE INSERT ON posts FOR EACH ROW SET NEW.title = UPPER(NEW.title)")
			s.c.DSN = s.limited(t)
			h := s.handler(t)
			report, b := s.backup(t, h)
			if text := strings.Join(report.Warnings, "\n"); !strings.Contains(text, "trigger told") ||
				!strings.Contains(text, "log_bin_trust_function_creators") {
				t.Errorf("the backup warns of %q", text)
			}
			if p := report.Verification; p.Level != manifest.LevelRestored || !p.OK ||
				!strings.Contains(p.Note, "log_bin_trust_function_creators") {
				t.Errorf("the verification is %+v", p)
			}
			s.MustExec("DELETE FROM posts WHERE id > 7")
			q := restore.Request{Backup: b, Database: true, SkipSafety: true}
			if plan, err := h.Plan(t.Context(), q, nil); err != nil || len(plan.Refused) != 1 ||
				!strings.Contains(plan.Refused[0], "trigger told") {
				t.Errorf("%+v, %v", plan.Refused, err)
			}
			if plan, err := h.Plan(t.Context(), restore.Request{Backup: b, Database: true, Tables: []string{"cache"}},
				nil); err != nil || len(plan.Refused) > 0 {
				t.Errorf("a table without a trigger: %+v, %v", plan.Refused, err)
			}
			q.Confirm = h.Token(q)
			if _, err := h.Restore(t.Context(), q, nil); !errors.Is(err, restore.ErrUnfit) ||
				!strings.Contains(err.Error(), "nothing was changed") {
				t.Errorf("%v", err)
			}
			var rows, triggers int
			if err := s.QueryRow("SELECT (SELECT COUNT(*) FROM posts), (SELECT COUNT(*) FROM "+
				"information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE())").Scan(&rows, &triggers); err != nil ||
				rows != 7 || triggers != 1 {
				t.Errorf("%d rows and %d triggers, %v", rows, triggers, err)
			}
			s.Root(t).MustExec("SET GLOBAL log_bin_trust_function_creators = 1")
			if done, err := h.Restore(t.Context(), q, nil); err != nil || len(done.Problems) > 0 {
				t.Errorf("%+v, %v", done, err)
			}
		})
	}
}

// What MariaDB made comes back on MySQL and the other way round, or is refused while
// nothing is changed.
func TestABackupComesToTheOtherServer(t *testing.T) {
	jobstest.AsRoot(t)
	for from, to := range map[jobstest.Engine]jobstest.Engine{jobstest.MariaDB: jobstest.MySQL,
		jobstest.MySQL: jobstest.MariaDB} {
		t.Run(string(from)+" to "+string(to), func(t *testing.T) {
			if from == jobstest.MySQL {
				jobstest.NeedVersion(t, from, 8, 0, "it has no collations of utf8mb4_0900")
			}
			s := newSite(t, from)
			s.MustExec("CREATE TABLE pages (id INT PRIMARY KEY, title VARCHAR(50), options JSON) DEFAULT " +
				"CHARSET=utf8mb4 COLLATE=" +
				map[jobstest.Engine]string{jobstest.MariaDB: "utf8mb4_unicode_nopad_ci",
					jobstest.MySQL: "utf8mb4_0900_ai_ci"}[from])
			s.MustExec(`INSERT INTO pages VALUES (1, 'COLLATE utf8mb4_0900_ai_ci ENGINE=Aria',
				'{"a": 1.0, "b": [1, 2]}')`)
			s.MustExec("CREATE VIEW titles AS SELECT title FROM pages")
			s.MustExec("CREATE TRIGGER told BEFORE INSERT ON pages FOR EACH ROW SET NEW.title = UPPER(NEW.title)")
			h := s.handler(t)
			_, b := s.backup(t, h)
			other := jobstest.Open(t, to)
			q := restore.Request{Backup: b, Database: true, IntoDSN: other.DSN}
			plan, err := h.Plan(t.Context(), q, nil)
			if err != nil || len(plan.Refused) > 0 || !strings.Contains(strings.Join(plan.Warnings, "\n"),
				"becomes utf8mb4_") {
				t.Fatalf("%+v, %v", plan, err)
			}
			q.Confirm = plan.Token
			done, err := h.Restore(t.Context(), q, nil)
			if err != nil || len(done.Problems) > 0 {
				t.Fatalf("%+v, %v", done.Problems, err)
			}
			var title string
			if err := other.Get(&title, "SELECT title FROM titles"); err != nil ||
				title != "COLLATE utf8mb4_0900_ai_ci ENGINE=Aria" {
				t.Errorf("%q, %v", title, err)
			}
			other.MustExec("INSERT INTO pages VALUES (2, 'x', '{}')")
			if err := other.Get(&title, "SELECT title FROM pages WHERE id = 2"); err != nil || title != "X" {
				t.Errorf("the trigger made %q, %v", title, err)
			}
		})
	}
}

// What the other server does not know is refused by what the backup says of itself,
// or by a rehearsal, and the tables that are there stay.
func TestWhatTheOtherServerDoesNotTakeIsRefusedBefore(t *testing.T) {
	for _, c := range []struct {
		from, to   jobstest.Engine
		make, want string
	}{
		{jobstest.MariaDB, jobstest.MySQL, "CREATE TABLE odd (id UUID)", "type uuid"},
		{jobstest.MariaDB, jobstest.MySQL, "CREATE SEQUENCE odd", "sequence odd"},
		{jobstest.MariaDB, jobstest.MySQL, "CREATE TABLE odd (v TEXT DEFAULT 'x')", "1101"},
		{jobstest.MySQL, jobstest.MariaDB, "CREATE TABLE odd (a INT, KEY f ((a + 1)))", "functional index f"},
		{jobstest.MySQL, jobstest.MariaDB, "CREATE TABLE odd (a INT); CREATE VIEW bad AS SELECT " +
			"JSON_SCHEMA_VALID('{}', '{}') AS x, REGEXP_LIKE('a', 'b') AS y", "does not take"},
	} {
		t.Run(string(c.from)+" "+c.make, func(t *testing.T) {
			if c.from == jobstest.MySQL {
				jobstest.NeedVersion(t, c.from, 8, 0, "it has neither functional indexes nor JSON_SCHEMA_VALID")
			} else if strings.Contains(c.make, "UUID") {
				jobstest.NeedVersion(t, c.from, 10, 7, "it has no type UUID")
			}
			s := newSite(t, c.from)
			for _, statement := range strings.Split(c.make, "; ") {
				s.MustExec(statement)
			}
			h := s.handler(t)
			h.c.Options.Verify = manifest.LevelNone
			_, b := s.backup(t, h)
			other := jobstest.Open(t, c.to)
			other.MustExec("CREATE TABLE posts (id INT)")
			other.MustExec("INSERT INTO posts VALUES (1)")
			q := restore.Request{Backup: b, Database: true, IntoDSN: other.DSN}
			plan, err := h.Plan(t.Context(), q, nil)
			if err != nil || !strings.Contains(strings.Join(plan.Refused, "\n"), c.want) {
				t.Errorf("%q, %v", plan.Refused, err)
			}
			q.Confirm = plan.Token
			if _, err := h.Restore(t.Context(), q, nil); !errors.Is(err, restore.ErrUnfit) {
				t.Errorf("%v", err)
			}
			var rows int
			if err := other.Get(&rows, "SELECT COUNT(*) FROM posts"); err != nil || rows != 1 {
				t.Errorf("%d rows are left, %v", rows, err)
			}
		})
	}
}

// The tables of Laravel's own migrations, on a server as MySQL's defaults have it, by
// an account without SUPER: verified and restored, and nothing is left out.
func TestLaravelsTablesAreVerifiedWithoutSuper(t *testing.T) {
	if _, err := os.Stat("/usr/share/php/Illuminate/autoload.php"); err != nil {
		jobstest.Skip(t, "apt-get install php-laravel-framework php-mysql: %v", err)
	}
	for engine, server := range map[jobstest.Engine]*jobstest.Server{
		jobstest.MariaDB: jobstest.OwnMariaDB(t, "--log-bin=binlog"),
		jobstest.MySQL:   jobstest.OwnMySQL(t, "--log-bin=binlog", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"),
	} {
		t.Run(string(engine), func(t *testing.T) {
			s := onServer(t, server, engine)
			s.MustExec("DROP TABLE posts, cache")
			cmd := exec.CommandContext(t.Context(), "php", "dump/testdata/laravel.php")
			cmd.Env = append(os.Environ(), "DB_PORT="+portOf(server), "DB_DATABASE="+databaseOf(t, s.DSN))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			s.c.DSN = s.limited(t)
			s.c.Options.EmptyTables = []string{"nothing"}
			h := s.handler(t)
			report, b := s.backup(t, h)
			if p := report.Verification; p.Level != manifest.LevelRestored || !p.OK || p.Note != "" {
				t.Fatalf("%+v", p)
			}
			s.MustExec("DELETE FROM posts")
			q := restore.Request{Backup: b, Database: true, SkipSafety: true}
			q.Confirm = h.Token(q)
			if done, err := h.Restore(t.Context(), q, nil); err != nil || len(done.Problems) > 0 {
				t.Errorf("%+v, %v", done.Problems, err)
			}
			var name string
			if err := s.Get(&name, "SELECT slug FROM posts"); err != nil || name != "grüße 🎉" {
				t.Errorf("%q, %v", name, err)
			}
		})
	}
}
