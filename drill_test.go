package cmsjobs_test

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// The drill of docs/operating.md, its own commands, on a sample site: what the
// plain tools restore is what was there.
func TestTheRestoreDrill(t *testing.T) { jobstest.EachMySQL(t, testTheRestoreDrill) }

func testTheRestoreDrill(t *testing.T, engine jobstest.Engine) {
	commands, tools := drillCommands(t), []string{"zstd", "tar"}
	if engine == jobstest.MySQL {
		jobstest.PreferMySQLPrograms(t)
	} else { // as the chapter says
		commands, tools = strings.Replace(commands, "| mysql $MYSQL", "| mariadb $MYSQL", 1), append(tools, "mariadb")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			jobstest.Skip(t, "%v", err)
		}
	}
	server := jobstest.Own(t, engine)
	db := server.RootMySQL(t)
	if _, err := db.Exec("CREATE DATABASE cms; CREATE DATABASE restored"); err != nil {
		t.Fatal(err)
	}
	site := filepath.Join(t.TempDir(), "site")
	run := func(words ...string) {
		t.Helper()
		if out, err := exec.Command(program(t), words...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
		}
	}
	run("--dsn", fmt.Sprintf("mysql://root@127.0.0.1:%d/cms", server.Port), "demo", "--seed-only", "--dir", site)
	form := "archive"
	if engine == jobstest.MySQL { // one each: the files do not know the server
		form = "repository"
	}
	run("--cms", site, "--set", "backup.free_space=16MiB", "--set", "backup.form="+form, "backup", "create")

	drill := t.TempDir()
	if out, err := exec.Command("cp", "-r", filepath.Join(site, "storage/app/cmsjobs-backups")+"/.",
		drill).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	shell := exec.Command("sh", "-euc", commands)
	shell.Dir = drill
	shell.Env = append(os.Environ(), fmt.Sprintf("MYSQL=--no-defaults --protocol=tcp -h127.0.0.1 -P%d -uroot",
		server.Port))
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	compareTables(t, db)
	photo := filepath.Join("public", "storage", "photos", "harbour-1.jpg")
	if restored := found(t, filepath.Join(drill, "restored", "files"), "harbour-1.jpg"); read(t, restored) != read(t,
		filepath.Join(site, photo)) {
		t.Errorf("%s is not the picture that was there", restored)
	}
}

// drillCommands are the commands of the chapter.
func drillCommands(t *testing.T) string {
	t.Helper()
	_, chapter, there := strings.Cut(read(t, "docs/operating.md"), "## Backup and restore drill")
	block := fence.FindStringSubmatch(chapter)
	if !there || block == nil || block[1] != "sh" {
		t.Fatal("docs/operating.md has no drill")
	}
	return block[2]
}

// compareTables holds the checksums of what the site has against what came back.
// Tables whose rows are left out of a backup on purpose, and the record of the
// backup itself, differ.
func compareTables(t *testing.T, db *sql.DB) {
	t.Helper()
	differ := map[string]bool{"jobs": true, "cache": true, "cache_locks": true, "sessions": true,
		"cmsjobs_backups": true, "cmsjobs_backup_verifications": true, "cmsjobs_backup_locks": true,
		"cmsjobs_backup_restores": true,
		// Their rows stay out of dumps: see docs/backup.md.
		"cmsjobs_backup_keys": true, "cmsjobs_backup_index": true, "cmsjobs_analytics_salts": true,
		"cmsjobs_webhooks": true,
		"cmsjobs_sessions": true, "cmsjobs_logins": true}
	rows, err := db.Query("SELECT table_name FROM information_schema.tables WHERE table_schema = 'cms' AND " +
		"table_type = 'BASE TABLE'")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	same := 0
	for _, name := range names {
		sum := func(schema string) (n sql.NullInt64) {
			t.Helper()
			var table string
			if err := db.QueryRow(fmt.Sprintf("CHECKSUM TABLE %s.`%s`", schema, name)).Scan(&table, &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		before, after := sum("cms"), sum("restored")
		if !after.Valid || before != after && !differ[name] {
			t.Errorf("%s: %v before, %v restored", name, before, after)
		}
		if before == after {
			same++
		}
	}
	if same < 40 {
		t.Errorf("only %d of %d tables were compared and equal", same, len(names))
	}
}

// found is the file of that name somewhere under dir.
func found(t *testing.T, dir, name string) string {
	t.Helper()
	out, err := exec.Command("find", dir, "-name", name).Output()
	path, _, _ := strings.Cut(string(out), "\n")
	if err != nil || path == "" {
		t.Fatalf("%s is not in %s", name, dir)
	}
	return path
}
