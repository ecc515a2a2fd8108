package cmsjobs_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/testgolden"
)

// otherSite is a CMS as its installer leaves it on PostgreSQL or SQLite, with the
// connection that its .env names.
func otherSite(t *testing.T, engine jobstest.Engine) (dir, driver, dsn string) {
	t.Helper()
	t.Setenv("LC_ALL", "C") // setup speaks the language of the account
	dir = t.TempDir()
	for _, folder := range []string{"public/storage", "storage/app", "storage/logs", "bootstrap/cache", "database"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	env, number := "DB_CONNECTION=sqlite\n", "INTEGER PRIMARY KEY AUTOINCREMENT"
	driver, dsn = "sqlite", "file:"+filepath.Join(dir, "database", "database.sqlite") // Laravel's place
	if engine == jobstest.PostgreSQL {
		driver, dsn, number = "pgx", jobstest.Open(t, engine).DSN, "BIGSERIAL PRIMARY KEY"
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		env = fmt.Sprintf("DB_CONNECTION=pgsql\nDB_HOST=%s\nDB_PORT=%s\nDB_DATABASE=%s\nDB_USERNAME=%s\n"+
			"DB_PASSWORD=\nDB_SSLMODE=disable\n", u.Hostname(), u.Port(), strings.TrimPrefix(u.Path, "/"),
			u.User.Username())
	}
	for path, text := range map[string]string{".env": "APP_URL=https://other.example\n" + env,
		"public/storage/a.txt": "an upload\n"} {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db := sqlx.MustOpen(driver, dsn)
	defer db.Close()
	for _, statement := range []string{
		"CREATE TABLE settings (id " + number + `, "key" VARCHAR(255), value TEXT)`,
		"CREATE TABLE posts (id " + number + `, name VARCHAR(255), content TEXT, status VARCHAR(60),
			created_at TIMESTAMP NULL, updated_at TIMESTAMP NULL)`,
		"CREATE TABLE slugs (id " + number + `, "key" VARCHAR(255), reference_id BIGINT, reference_type VARCHAR(255),
			prefix VARCHAR(120))`,
		`INSERT INTO posts (name, content, status, created_at, updated_at)
			VALUES ('One', 'text', 'published', '2026-01-01 00:00:00', '2026-01-01 00:00:00')`,
		`INSERT INTO slugs ("key", reference_id, reference_type, prefix)
			VALUES ('one', 1, 'Botble\Blog\Models\Post', 'news')`,
	} {
		db.MustExec(statement)
	}
	if _, err := tables.CreateTables(t.Context(), db, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	return dir, driver, dsn
}

// otherTraces are the files below folders, and what is in the database: all rows, and on
// PostgreSQL all else that a schema holds. A SQLite file counts as its rows and its journal.
func otherTraces(t *testing.T, driver, dsn string, folders ...string) map[string]string {
	t.Helper()
	found := fileTraces(t, folders...)
	query := `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'`
	if driver == "sqlite" {
		file := strings.TrimPrefix(dsn, "file:")
		found[file] = "rollback journal"
		if read(t, file)[18] != 1 {
			found[file] = "write-ahead log"
		}
		query = `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`
	}
	db := sqlx.MustOpen(driver, dsn)
	defer db.Close()
	var names, others []string
	if err := db.Select(&names, query); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		rows, err := db.Queryx(`SELECT * FROM "` + name + `"`)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for rows.Next() {
			row, err := rows.SliceScan()
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprint(row))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(all)
		found["table "+name] = strings.Join(all, "\n")
	}
	if driver == "pgx" {
		if err := db.Select(&others, `SELECT 'relation ' || relname FROM pg_class
			WHERE relnamespace = 'public'::regnamespace
			UNION ALL SELECT 'function ' || proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
			UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger WHERE NOT tgisinternal
			UNION ALL SELECT 'database ' || datname FROM pg_database WHERE datname LIKE 'cmsjobs%'`); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range others {
		found[other] = "there"
	}
	return found
}

// On PostgreSQL and on SQLite, too, setup ends with a first backup that was restored, and
// its removal leaves no trace; the plan changes nothing and says what is different there.
func TestSetupOnOtherDatabases(t *testing.T) {
	for engine, says := range map[jobstest.Engine]struct{ plan, end, not string }{
		jobstest.PostgreSQL: {"on PostgreSQL a restore brings back the moment of a backup",
			`GRANT INSERT, UPDATE, DELETE ON "public"."cmsjobs_runs" TO cmsjobs;`, "write-ahead log"},
		jobstest.SQLite: {"database/database.sqlite gets a write-ahead log", "The page:", "GRANT"},
	} {
		t.Run(string(engine), func(t *testing.T) {
			binary, root := program(t), t.TempDir()
			dir, driver, dsn := otherSite(t, engine)
			run := func(words ...string) string {
				t.Helper()
				c := exec.Command(binary, append([]string{"--cms", dir, "setup", "--prefix", root, "--yes"},
					words...)...)
				c.Dir = root
				out, err := c.CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %v\n%s", words, err, out)
				}
				return string(out)
			}
			before := otherTraces(t, driver, dsn, dir, root)
			if out := run("--way", "systemd", "--dry-run"); !strings.Contains(out, says.plan) {
				t.Errorf("the plan does not say %q:\n%s", says.plan, out)
			}
			if rest := differences(before, otherTraces(t, driver, dsn, dir, root)); len(rest) > 0 {
				t.Fatalf("a plan changes %v", rest)
			}
			if engine == jobstest.SQLite {
				vietnamesePlan(t, binary, dir, root)
			}
			out := run("--way", "systemd")
			for _, must := range []string{"verified: restored", "http://127.0.0.1:", says.end} {
				if !strings.Contains(out, must) {
					t.Errorf("it does not say %q:\n%s", must, out)
				}
			}
			if strings.Contains(out, says.not) {
				t.Errorf("it says %q:\n%s", says.not, out)
			}
			if !strings.Contains(read(t, filepath.Join(dir, "public/sitemap.xml")), "https://other.example/") {
				t.Error("there is no sitemap of the site")
			}
			unit := read(t, filepath.Join(root, "etc/systemd/system/cmsjobs.service"))
			if strings.Contains(unit, " -"+dir+"/database\n") != (engine == jobstest.SQLite) {
				t.Errorf("the unit may write into\n%s", unit)
			}
			if engine == jobstest.PostgreSQL {
				worksWithGrants(t, out, dsn, filepath.Join(root, "etc/cmsjobs/config.yaml"))
			}
			t.Log(run("--remove"))
			if rest := differences(before, otherTraces(t, driver, dsn, dir, root)); len(rest) > 0 {
				t.Errorf("after the removal: %v", rest)
			}
		})
	}
}

// vietnamesePlan shows a plan to an owner whose account speaks Vietnamese.
func vietnamesePlan(t *testing.T, binary, dir, root string) {
	t.Helper()
	c := exec.Command(binary, "--cms", dir, "setup", "--prefix", root, "--yes", "--dry-run", "--way", "systemd")
	c.Dir, c.Env = root, append(os.Environ(), "LC_ALL=vi_VN.UTF-8")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	who, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(dir, "/var/www/site", "bằng tài khoản "+who.Username+":", "bằng tài khoản www-data:").
		Replace(string(out))
	testgolden.Check(t, "internal/setup/testdata/plan.vi.txt", []byte(text))
}

// worksWithGrants runs the statements that setup printed, works and makes a backup with
// the account that they make, and takes the account away.
func worksWithGrants(t *testing.T, out, dsn, config string) {
	t.Helper()
	db := sqlx.MustOpen("pgx", dsn)
	defer db.Close()
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); strings.HasSuffix(line, ";") {
			db.MustExec(line)
		}
	}
	defer db.MustExec("DROP OWNED BY cmsjobs; DROP ROLE cmsjobs")
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("cmsjobs", "change-me")
	elsewhere := t.TempDir()
	for _, words := range [][]string{{"enqueue", "sitemap.generate"}, {"work", "--stop-when-empty"},
		{"backup", "create", "--name", "granted"}} {
		c := exec.Command(program(t), append([]string{"--config", config, "--dsn", u.String(), "--set",
			"backup.dir=" + elsewhere}, words...)...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v with the printed rights: %v\n%s", words, err, out)
		}
	}
	var left int
	if err := db.Get(&left, `SELECT count(*) FROM jobs`); err != nil || left > 0 {
		t.Errorf("%d jobs are left, %v", left, err)
	}
}
