package cmsjobs_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// fixtureSite is a real CMS's database and uploads in a folder as its installer
// leaves it.
func fixtureSite(t *testing.T, engine jobstest.Engine) (dir string, db *jobstest.Database) {
	t.Helper()
	t.Setenv("LC_ALL", "C") // setup speaks the language of the account
	sql := read(t, jobstest.Fixture(t, "database-core-7.6.8.sql"))
	db = jobstest.Open(t, engine)
	db.MustExec(sql)
	dsn, err := mysql.ParseDSN(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(dsn.Addr)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for _, folder := range []string{"public/storage", "storage/app", "storage/logs", "storage/framework/cache/data",
		"bootstrap/cache"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("cp", "-r", jobstest.Fixture(t, "storage")+"/.", filepath.Join(dir,
		"public/storage")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	env := fmt.Sprintf("APP_URL=https://cms.example\nDB_CONNECTION=mysql\nDB_HOST=%s\nDB_PORT=%s\nDB_DATABASE=%s\n"+
		"DB_USERNAME=%s\nDB_PASSWORD=%s\n", host, port, dsn.DBName, dsn.User, dsn.Passwd)
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte(env), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, db
}

// fileTraces are the files below folders with their digests.
func fileTraces(t *testing.T, folders ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			found[path] = "folder"
			if d.Type().IsRegular() {
				found[path] = fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, path))))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// traces are the files below folders with their digests, and the tables with their rows.
func traces(t *testing.T, db *jobstest.Database, folders ...string) map[string]string {
	t.Helper()
	found := fileTraces(t, folders...)
	var tables []string
	if err := db.Select(&tables,
		"SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		var name string
		var sum any
		if err := db.QueryRow("CHECKSUM TABLE `"+table+"`").Scan(&name, &sum); err != nil {
			t.Fatal(err)
		}
		found["table "+table] = fmt.Sprint(sum)
	}
	return found
}

func differences(before, after map[string]string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if was, there := before[name]; !there || was != after[name] {
			list = append(list, "now "+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, there := after[name]; !there {
			list = append(list, "gone "+name)
		}
	}
	return list
}

// From the program to a page with a verified backup: on an empty root beside a real
// CMS, in less than a minute and with at most three answers; and undone without a
// trace, in the files and in the database.
func TestSetupAndItsRemoval(t *testing.T) { jobstest.EachMySQL(t, testSetupAndItsRemoval) }

func testSetupAndItsRemoval(t *testing.T, engine jobstest.Engine) {
	binary := program(t)
	dir, db := fixtureSite(t, engine)
	root := t.TempDir()
	before := traces(t, db, dir, root)
	run := func(answers string, words ...string) (string, error) {
		c := exec.Command(binary, append([]string{"--cms", dir, "setup", "--prefix", root}, words...)...)
		c.Stdin, c.Dir = strings.NewReader(answers), root
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := run("", "--way", "systemd", "--dry-run", "--yes"); err != nil ||
		!strings.Contains(out, "/etc/systemd/system/cmsjobs.service") {
		t.Fatalf("the plan: %v\n%s", err, out)
	}
	if rest := differences(before, traces(t, db, dir, root)); len(rest) > 0 {
		t.Fatalf("a plan changes %v", rest)
	}

	begun := time.Now()
	out, err := run("owner@cms.example\ny\n", "--way", "systemd") // two answers; without --way three
	took := time.Since(begun)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s\nset up in %s", out, took)
	if took > time.Minute {
		t.Errorf("it took %s", took)
	}
	for _, must := range []string{"verified: restored", "http://127.0.0.1:", "sign in", "setup --remove",
		"GRANT SELECT", "`.`cmsjobs_runs` TO"} {
		if !strings.Contains(out, must) {
			t.Errorf("it does not say %q:\n%s", must, out)
		}
	}
	config := read(t, filepath.Join(root, "etc/cmsjobs/config.yaml"))
	unit := read(t, filepath.Join(root, "etc/systemd/system/cmsjobs.service"))
	if !strings.Contains(config, "owner@cms.example") || !strings.Contains(config, dir) ||
		!strings.Contains(unit, "ReadWritePaths=-"+dir+"/public -"+dir+"/storage") {
		t.Errorf("written were\n%s\n%s", config, unit)
	}
	if !strings.Contains(read(t, filepath.Join(dir, "public/sitemap.xml")), "cms.example") {
		t.Error("there is no sitemap")
	}
	if out, err := run("", "--way", "systemd", "--yes"); err == nil || !strings.Contains(out, "set up already") {
		t.Errorf("a second setup: %v\n%s", err, out)
	}

	if out, err := run("", "--remove", "--yes"); err != nil {
		t.Fatalf("removing: %v\n%s", err, out)
	}
	if rest := differences(before, traces(t, db, dir, root)); len(rest) > 0 {
		t.Errorf("after the removal: %v", rest)
	}
}

// What is foreign stops setup before it changes anything.
func TestSetupReplacesNothingForeign(t *testing.T) {
	binary, dir, root := program(t), t.TempDir(), t.TempDir()
	file := filepath.Join(dir, "cms.sqlite")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(binary, "--dsn", "sqlite:"+file, "migrate", "up",
		"--create-jobs").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	theirs := filepath.Join(root, "etc/systemd/system/cmsjobs.service")
	if err := os.MkdirAll(filepath.Dir(theirs), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{theirs: "[Unit]\nDescription=mine\n",
		filepath.Join(dir, ".env"): "DB_CONNECTION=sqlite\nDB_DATABASE=" + file + "\nAPP_URL=https://plain.example\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(binary, "--cms", dir, "setup", "--prefix", root, "--way", "systemd", "--yes")
	c.Dir = root
	out, err := c.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "setup did not write it") ||
		read(t, theirs) != "[Unit]\nDescription=mine\n" {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(root, "etc/cmsjobs")); !os.IsNotExist(err) {
		t.Errorf("something was written: %v", err)
	}
}

// Once another backup was made, all of them stay, with the repository of their files.
func TestTheRemovalOfSetupKeepsLaterBackups(t *testing.T) {
	binary := program(t)
	dir, _ := fixtureSite(t, jobstest.MariaDB)
	root := t.TempDir()
	run := func(words ...string) string {
		t.Helper()
		c := exec.Command(binary, append([]string{"--cms", dir}, words...)...)
		c.Dir = root
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", words, err, out)
		}
		return string(out)
	}
	backups := func() map[string]string {
		found := map[string]string{}
		err := filepath.WalkDir(filepath.Join(dir, "storage/app/cmsjobs-backups"), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				found[path] = read(t, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	run("setup", "--prefix", root, "--way", "systemd", "--yes")
	run("--config", filepath.Join(root, "etc/cmsjobs/config.yaml"), "backup", "create", "--name", "mine")
	before := backups()
	out := run("setup", "--prefix", root, "--remove", "--yes")
	if !strings.Contains(out, "kept the backups") || !strings.Contains(out, "all backups and the repository stay") {
		t.Errorf("it says\n%s", out)
	}
	if rest := differences(before, backups()); len(before) < 7 || len(rest) > 0 {
		t.Errorf("of %d files of backups: %v", len(before), rest)
	}
}
