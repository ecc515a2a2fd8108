package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// snippets are the blocks of docs/enqueue.md by their language, in order.
func snippets(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "enqueue.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string][]string{}
	for _, m := range regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```").FindAllStringSubmatch(string(page), -1) {
		blocks[m[1]] = append(blocks[m[1]], m[2])
	}
	return blocks
}

// enqueuing is a running service, and the table that callers write to.
type enqueuing struct {
	*service
	db    *sqlx.DB
	token string
}

// startEnqueuing starts a service that works on nothing, so that jobs can be
// looked at.
func startEnqueuing(t *testing.T, engine jobstest.Engine, layout tables.Layout) *enqueuing {
	t.Helper()
	db := jobstest.Open(t, engine)
	if _, err := tables.CreateTables(t.Context(), db.DB, layout, ""); err != nil {
		t.Fatal(err)
	}
	dsn := db.DSN
	if engine == jobstest.SQLite {
		path := jobstest.SQLiteFile(dsn)
		dsn = "sqlite:" + path
	}
	config := fmt.Sprintf("queue: {worker: false}\nschedule: {enabled: false}\nsitemap: {dir: %q}\n", t.TempDir())
	s := startService(t, config, "--dsn="+dsn)
	return &enqueuing{s, db.DB, s.token("admin")}
}

// asksForASitemap runs what enqueues and looks at the one job that it made.
func (e *enqueuing) asksForASitemap(name string, enqueue func(t *testing.T)) {
	e.t.Run(name, func(t *testing.T) {
		all := e.t
		e.t = t
		defer func() { e.t = all }()
		before := time.Now().Truncate(time.Second)
		enqueue(t)
		after := time.Now()
		var list struct {
			Items []struct {
				ID, Status string
				RunAt      time.Time `json:"run_at"`
				Payload    struct{ Force bool }
			}
		}
		e.ask(200, "GET", "/api/v1/jobs?type=sitemap.generate&status=queued", "", bearer(e.token), &list)
		if len(list.Items) != 1 {
			t.Fatalf("%d jobs wait, want 1", len(list.Items))
		}
		job := list.Items[0]
		if !job.Payload.Force || job.RunAt.Before(before.Add(60*time.Second)) ||
			job.RunAt.After(after.Add(61*time.Second)) {
			t.Errorf("%+v; it was asked for between %v and %v", job, before, after)
		}
		e.ask(204, "DELETE", "/api/v1/jobs/"+job.ID, "", bearer(e.token), nil)
	})
}

func (e *enqueuing) sql(statement string) func(*testing.T) {
	return func(t *testing.T) {
		if _, err := e.db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheSameJobFromEverywhere runs every snippet of docs/enqueue.md as it
// stands there, against the running program.
func TestTheSameJobFromEverywhere(t *testing.T) {
	t.Parallel()
	all := snippets(t)
	if len(all["sql"]) != 4 || len(all["php"]) != 1 || len(all["ts"]) != 1 || len(all["go"]) != 1 ||
		len(all["sh"]) != 1 {
		t.Fatalf("docs/enqueue.md has other snippets than this test runs: %d sql, %d php, %d ts, %d go, %d sh",
			len(all["sql"]), len(all["php"]), len(all["ts"]), len(all["go"]), len(all["sh"]))
	}
	e := startEnqueuing(t, jobstest.MySQL, tables.Stock)
	e.asksForASitemap("SQL", e.sql(all["sql"][0]))
	e.asksForASitemap("curl", func(t *testing.T) {
		script := strings.ReplaceAll(all["sh"][0], "https://cms.example", e.url)
		runIn(t, t.TempDir(), []string{"CMSJOBS_TOKEN=" + e.token}, "sh", "-c", script)
	})
	e.asksForASitemap("JavaScript", func(t *testing.T) {
		program := fmt.Sprintf("import { JobsService } from %q;\nconst token = %q;\n%s",
			filepath.Join(javaScriptSDK(t), "dist", "index.js"), e.token,
			strings.ReplaceAll(all["ts"][0], "https://cms.example", e.url))
		file := filepath.Join(t.TempDir(), "main.mjs")
		if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
		runIn(t, ".", nil, "node", file)
	})
	e.asksForASitemap("Go", func(t *testing.T) { e.runGo(t, all["go"][0]) })
	e.asksForASitemap("PHP", func(t *testing.T) { e.runPHP(t, all["php"][0]) })

	postgres := startEnqueuing(t, jobstest.PostgreSQL, tables.Stock)
	postgres.asksForASitemap("SQL of PostgreSQL", postgres.sql(all["sql"][1]))
	sqlite := startEnqueuing(t, jobstest.SQLite, tables.Stock)
	sqlite.asksForASitemap("SQL of SQLite", sqlite.sql(all["sql"][2]))
	extended := startEnqueuing(t, jobstest.MySQL, tables.Extended)
	extended.asksForASitemap("SQL of extended tables", extended.sql(all["sql"][3]))
}

// runGo puts the snippet into its own module that requires the client and
// the driver that it opens the database with: nothing else comes along.
func (e *enqueuing) runGo(t *testing.T, snippet string) {
	t.Helper()
	var dsn string
	for _, f := range e.flags {
		dsn, _ = strings.CutPrefix(f, "--dsn=")
	}
	program := fmt.Sprintf(`package main

import (
	"context"
	"database/sql"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/client"
)

func main() {
	ctx := context.Background()
	db, err := sql.Open("mysql", %q)
	check(err)
	tx, err := db.BeginTx(ctx, nil)
	check(err)
	%s
	check(err)
	check(tx.Commit())
	if len(receipts) != 1 {
		panic("no receipt")
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
`, dsn, strings.Replace(snippet, "\n", "\n\tcheck(err)\n", 1))
	dir := moduleOf(t, program)
	runIn(t, dir, nil, "go", "run", ".")
	got := strings.Fields(runIn(t, dir, nil, "go", "list", "-m", "-f", "{{.Path}}", "all"))
	slices.Sort(got)
	want := []string{"filippo.io/edwards25519", "github.com/cmsjobs/cmsjobs/client", "github.com/go-sql-driver/mysql",
		"importer"}
	if !slices.Equal(got, want) { // the driver brings edwards25519
		t.Errorf("who imports the client gets the modules %v, want %v", got, want)
	}
}

// moduleOf is a folder with a program that requires the client and MySQL's driver.
func moduleOf(t *testing.T, program string) string {
	t.Helper()
	ours, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join("..", "..", "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := filepath.Abs(filepath.Join("..", "..", "client"))
	if err != nil {
		t.Fatal(err)
	}
	requires := regexp.MustCompile(`(?m)^\t(github.com/go-sql-driver/mysql|filippo.io/edwards25519) v.*`).
		FindAllString(string(ours), -1)
	mod := fmt.Sprintf("module importer\n\ngo 1.26.4\n\nrequire (\n\tgithub.com/cmsjobs/cmsjobs/client "+
		"v0.0.0\n%s\n)\n\n"+
		"replace github.com/cmsjobs/cmsjobs/client => %s\n", strings.Join(requires, "\n"), client)
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": mod, "go.sum": string(sums), "main.go": program} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// runPHP runs the snippet as a controller of a Laravel application would.
func (e *enqueuing) runPHP(t *testing.T, snippet string) {
	t.Helper()
	if _, err := os.Stat("/usr/share/php/Illuminate/autoload.php"); err != nil {
		jobstest.Skip(t, "apt-get install php-cli php-laravel-framework php-mysql: %v", err)
	}
	var name string
	var port int
	if err := e.db.QueryRow("SELECT DATABASE(), @@port").Scan(&name, &port); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "php", filepath.Join("..", "..", "sdk", "php", "tests", "snippet.php"))
	c.Env = append(os.Environ(), fmt.Sprintf("DB_PORT=%d", port), "DB_DATABASE="+name)
	c.Stdin = strings.NewReader(snippet)
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v\n%s", err, out)
	}
}
