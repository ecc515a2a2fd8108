package cmsjobs_test

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// F19: the upgrade of docs/operating.md, carried out under load: workers of an
// older revision and of this one on one table, tables brought up to date while
// the old ones work, the old ones killed and restarted as new ones, and back
// again. make upgrade names the revision.
func TestUpgradeUnderLoad(t *testing.T) { jobstest.EachMySQL(t, testUpgradeUnderLoad) }

func testUpgradeUnderLoad(t *testing.T, engine jobstest.Engine) {
	revision := os.Getenv("CMSJOBS_UPGRADE_FROM")
	if revision == "" {
		t.Skip("CMSJOBS_UPGRADE_FROM=v0.1.0 runs this (make upgrade)")
	}
	u := newUpgrade(t, engine, revision)
	u.do(u.older, "migrate", "up")
	before := u.tables()
	old := []*exec.Cmd{u.start(u.older), u.start(u.older)}
	u.insert(3000)
	u.await(300)

	u.do(u.newer, "migrate", "up")
	if after := u.tables(); after <= before {
		t.Errorf("the upgrade made no table: %d, then %d; take an older revision", before, after)
	}
	fresh := []*exec.Cmd{u.start(u.newer), u.start(u.newer)}
	u.await(900)
	u.stop(old[0], syscall.SIGTERM)
	u.stop(old[1], syscall.SIGKILL)
	u.stop(fresh[1], syscall.SIGKILL)
	u.await(1500)

	back := u.start(u.older) // the upgrade is taken back; the tables stay
	u.stop(fresh[0], syscall.SIGTERM)
	u.await(3000)
	u.stop(back, syscall.SIGTERM)
	u.judge(3000)
}

// upgrade is a sample CMS on a server, an older program and this one.
type upgrade struct {
	t            *testing.T
	db           *sql.DB
	older, newer string
	env          []string
	killed       int
}

func newUpgrade(t *testing.T, engine jobstest.Engine, revision string) *upgrade {
	t.Helper()
	server := jobstest.Own(t, engine)
	u := &upgrade{t: t, db: server.RootMySQL(t), older: builtAt(t, revision), newer: program(t)}
	if _, err := u.db.Exec("CREATE DATABASE cms; USE cms;\n" + read(t, "deploy/compose/cms.sql")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CMSJOBS_UPGRADE_FROM", "") // it is no setting of the program
	os.Unsetenv("CMSJOBS_UPGRADE_FROM")
	u.env = append(os.Environ(), fmt.Sprintf("CMSJOBS_DATABASE_DSN=mysql://root@127.0.0.1:%d/cms", server.Port),
		"CMSJOBS_DATABASE_MIGRATE=false", "CMSJOBS_QUEUE_LEASE=5s", "CMSJOBS_QUEUE_CONCURRENCY=2")
	return u
}

// builtAt builds the program of a revision, without touching the working tree.
func builtAt(t *testing.T, revision string) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("sh", "-c", `git archive "$1" | tar -x -C "$2"`, "sh", revision, dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	build := exec.Command("go", "build", "-o", "cmsjobs-older", "./cmd/cmsjobs")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", revision, err, out)
	}
	return filepath.Join(dir, "cmsjobs-older")
}

func (u *upgrade) do(binary string, words ...string) {
	u.t.Helper()
	c := exec.Command(binary, words...)
	c.Env = u.env
	if out, err := c.CombinedOutput(); err != nil {
		u.t.Fatalf("%s %s: %v\n%s", filepath.Base(binary), strings.Join(words, " "), err, out)
	}
}

func (u *upgrade) start(binary string) *exec.Cmd {
	u.t.Helper()
	c := exec.Command(binary, "work")
	c.Env = u.env
	if !strings.HasSuffix(binary, "-older") { // which may not know the setting, and needs none
		c.Env = append(slices.Clone(u.env), "CMSJOBS_QUEUE_INTERNAL_ROWS=cmsjobs.probe")
	}
	if err := c.Start(); err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { _ = c.Process.Kill() }) // usually gone by then
	return c
}

func (u *upgrade) stop(c *exec.Cmd, s syscall.Signal) {
	u.t.Helper()
	if err := c.Process.Signal(s); err != nil {
		u.t.Errorf("a worker was gone: %v", err)
	}
	if err := c.Wait(); s == syscall.SIGKILL {
		u.killed++
	} else if err != nil {
		u.t.Errorf("a worker ended with %v after TERM", err)
	}
}

func (u *upgrade) number(query string) (n int) {
	u.t.Helper()
	if err := u.db.QueryRow(query).Scan(&n); err != nil {
		u.t.Fatal(err)
	}
	return n
}

func (u *upgrade) tables() int {
	return u.number(`SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'cms' AND table_name LIKE
		'cmsjobs\_%'`)
}

// insert enqueues as the CMS does.
func (u *upgrade) insert(n int) {
	u.t.Helper()
	for from := 0; from < n; from += 500 {
		var rows []string
		for key := from; key < from+500; key++ {
			rows = append(rows,
				fmt.Sprintf(
					`('default', '{"type":"cmsjobs.probe","uuid":"00000000-0000-4000-8000-%012d","sleep":"20ms"}', 0, UNIX_TIMESTAMP(), UNIX_TIMESTAMP())`, key))
		}
		if _, err := u.db.Exec("INSERT INTO cms.jobs (queue, payload, attempts, available_at, created_at) VALUES " +
			strings.Join(rows, ", ")); err != nil {
			u.t.Fatal(err)
		}
	}
}

// await waits until so many jobs are done.
func (u *upgrade) await(n int) {
	u.t.Helper()
	for deadline := time.Now().Add(4 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if u.number("SELECT COUNT(*) FROM cms.cmsjobs_runs WHERE outcome = 'completed' AND uuid LIKE "+
			"'00000000-0000-4000-8000-%'") >= n {
			return
		}
	}
	u.t.Fatalf("%d jobs are not done in time", n)
}

func (u *upgrade) judge(n int) {
	u.t.Helper()
	const ours = " AND uuid LIKE '00000000-0000-4000-8000-%'" // the sample CMS has its own jobs
	runs := u.number("SELECT COUNT(*) FROM cms.cmsjobs_runs WHERE outcome = 'completed'" + ours)
	uuids := u.number("SELECT COUNT(DISTINCT uuid) FROM cms.cmsjobs_runs WHERE outcome = 'completed'" + ours)
	left, failed := u.number("SELECT COUNT(*) FROM cms.jobs WHERE payload LIKE '%00000000-0000-4000-8000-%'"),
		u.number("SELECT COUNT(*) FROM cms.failed_jobs WHERE payload LIKE '%00000000-0000-4000-8000-%'")
	crashed := u.number("SELECT COUNT(*) FROM cms.cmsjobs_runs WHERE outcome = 'crashed'")
	if runs != n || uuids != n || left != 0 || failed != 0 || crashed > 2*u.killed {
		u.t.Errorf("%d of %d jobs are done in %d runs, %d left, %d failed, %d cut off by %d kills", uuids, n, runs,
			left, failed, crashed, u.killed)
	}
	u.t.Logf("%d jobs: %d done once each, %d cut off and done again, %d lost", n, uuids, crashed, n-uuids)
}
