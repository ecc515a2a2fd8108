package backup

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/fileset"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/swap"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// restoreChildEnv makes the test binary restore a backup, until it is killed.
const restoreChildEnv = "CMSJOBS_TEST_RESTORE_CHILD"

func restoreChild(args []string) error {
	driver, dsn, id := args[0], args[1], args[4]
	db, err := sqlx.Open(driver, dsn)
	if err != nil {
		return err
	}
	files, err := storage.NewLocal(args[2], storage.LocalOptions{})
	if err != nil {
		return err
	}
	dest, err := storage.NewLocal(args[3], storage.LocalOptions{})
	if err != nil {
		return err
	}
	h, err := New(Config{Site: &cms.Site{DB: db}, DB: db, DSN: dsn,
		Destinations: map[string]storage.Store{"local": dest},
		Files:        []fileset.Set{{Label: "storage", Store: files}},
		Options:      Options{MinFree: 1, Verify: manifest.LevelNone}, Now: time.Now, Logger: discard()})
	if err != nil {
		return err
	}
	b, err := h.Show(context.Background(), id, "local")
	if err != nil {
		return err
	}
	q := restore.Request{Backup: b, Database: true, Files: true, SkipSafety: true}
	q.Confirm = h.Token(q)
	fmt.Println("ready")
	_, err = h.Restore(context.Background(), q, nil)
	if err == nil {
		fmt.Println("restored")
	}
	return err
}

// killSite is a site with foreign keys, triggers, a view and a table that no backup
// knows, each row and file of which says of which version it is.
type killSite struct {
	*site
	backupID string
}

const killTables = 6

func newKillSite(t *testing.T, engine jobstest.Engine) *killSite {
	t.Helper()
	s := &killSite{site: newSite(t, engine)}
	s.c.Options.Verify = manifest.LevelNone
	for i := range killTables {
		key := ""
		if i > 0 {
			key = fmt.Sprintf(", parent INT, CONSTRAINT t_%d_parent_foreign FOREIGN KEY (parent) REFERENCES t_%d (id) "+
				"ON DELETE CASCADE", i, i-1)
		}
		s.MustExec(fmt.Sprintf("CREATE TABLE t_%d (id INT PRIMARY KEY, version INT, pad VARCHAR(200)%s)", i, key))
	}
	s.MustExec("CREATE TABLE told (n INT)")
	s.MustExec("CREATE TRIGGER tells AFTER DELETE ON t_3 FOR EACH ROW INSERT INTO told VALUES (OLD.id)")
	s.MustExec("CREATE VIEW seen AS SELECT MIN(version) AS least, MAX(version) AS most FROM t_5")
	s.write(t, "version.txt", "1")
	s.fill(t, 1)
	_, b := s.backup(t, s.handler(t))
	s.backupID = b.ID
	s.MustExec(
		"CREATE TABLE kept (id INT PRIMARY KEY, parent INT, CONSTRAINT kept_parent_foreign FOREIGN KEY (parent) " +
			"REFERENCES t_2 (id))")
	return s
}

// fill makes every row and file one of a version.
func (s *killSite) fill(t *testing.T, version int) {
	t.Helper()
	s.MustExec("SET FOREIGN_KEY_CHECKS = 0")
	for i := range killTables {
		columns := "id, version, pad"
		values := fmt.Sprintf("seq, %d, REPEAT('x', 200)", version)
		if i > 0 {
			columns, values = columns+", parent", values+", seq"
		}
		s.MustExec(fmt.Sprintf("DELETE FROM t_%d", i))
		s.MustExec(fmt.Sprintf("INSERT INTO t_%d (%s) SELECT %s FROM %s WHERE seq <= %d", i, columns, values,
			jobstest.Numbers(1000), 600+version*100))
	}
	for n := range 20 {
		s.write(t, fmt.Sprintf("many/%d.txt", n), fmt.Sprint(version))
	}
	s.write(t, "version.txt", fmt.Sprint(version))
}

// state is the version of the whole site; 0 is a mixture.
func (s *killSite) state(t *testing.T) int {
	t.Helper()
	var versions []int
	for i := range killTables {
		var least, most, rows int
		if err := s.QueryRow(fmt.Sprintf("SELECT MIN(version), MAX(version), COUNT(*) FROM t_%d", i)).Scan(&least,
			&most,
			&rows); err != nil {
			t.Fatal(err)
		}
		if rows != 600+least*100 {
			t.Errorf("t_%d has %d rows of version %d", i, rows, least)
		}
		versions = append(versions, least, most)
	}
	var least, most int
	if err := s.QueryRow("SELECT least, most FROM seen").Scan(&least, &most); err != nil {
		t.Error(err)
	}
	versions = append(versions, least, most)
	for n := range 20 {
		data, err := os.ReadFile(filepath.Join(s.files, fmt.Sprintf("many/%d.txt", n)))
		if err != nil {
			t.Error(err)
		}
		versions = append(versions, int(data[0]-'0'))
	}
	for _, v := range versions {
		if v != versions[0] {
			t.Errorf("the site is a mixture: %v", versions)
			return 0
		}
	}
	return versions[0]
}

// constraints checks what belongs to tables: keys, triggers, no leftovers.
func (s *killSite) constraints(t *testing.T) {
	t.Helper()
	var keys, triggers, left int
	var bad []string
	if err := s.QueryRow("SELECT (SELECT COUNT(*) FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE "+
		"CONSTRAINT_SCHEMA = DATABASE()), (SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = "+
		"DATABASE()), (SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME "+
		"LIKE ?)", swap.Prefix+"%").Scan(&keys, &triggers, &left); err != nil || keys != killTables || triggers != 1 ||
		left != 0 {
		t.Errorf("%d foreign keys, %d triggers, %d tables left over, %v", keys, triggers, left, err)
	}
	if err := s.Select(&bad, "SELECT CONCAT(TABLE_NAME, ' ', CONSTRAINT_NAME, ' ', REFERENCED_TABLE_NAME) FROM "+
		"information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = DATABASE() AND NOT "+
		"(REFERENCED_TABLE_NAME "+
		"LIKE 't\\_%' AND CONSTRAINT_NAME = CONCAT(TABLE_NAME, '_parent_foreign'))"); err != nil || len(bad) > 0 {
		t.Errorf("foreign keys: %q, %v", bad, err)
	}
	entries, err := os.ReadDir(s.files)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".cmsjobs") {
			t.Errorf("the folder %s is left over", e.Name())
		}
	}
}

// Whatever moment a restore is killed at, the site is wholly as it was or wholly as the
// backup, that is known until it is brought to its end, and nothing is left over.
func TestARestoreThatIsKilledIsWhollyDoneOrNotAtAll(t *testing.T) {
	jobstest.EachMySQL(t, testARestoreThatIsKilledIsWhollyDoneOrNotAtAll)
}

func testARestoreThatIsKilledIsWhollyDoneOrNotAtAll(t *testing.T, engine jobstest.Engine) {
	jobstest.AsRoot(t) // it makes triggers
	s := newKillSite(t, engine)
	t.Setenv("TMPDIR", t.TempDir())
	kills := jobstest.Size(t, jobstest.Kills, 6, 100)
	s.fill(t, 2)
	began := time.Now()
	s.runRestore(t, 0)
	if v := s.state(t); v != 1 {
		t.Fatalf("a whole restore makes version %d", v)
	}
	s.constraints(t)
	length := time.Since(began)
	ends := map[string]int{}
	for i, tries := 0, 0; i < kills && tries < 3*kills; tries++ {
		s.fill(t, 2)
		start := time.Now()
		// not a wait for something: each at a random moment of its part of the whole
		killed := s.runRestore(t, (length*time.Duration(i)+time.Duration(rand.Int64N(int64(length))))/time.Duration(kills))
		if killed {
			i++
		} else { // it was faster than those before
			length = min(length, time.Since(start))
			ends["ended before its kill"]++
		}
		s.MustExec("UPDATE cmsjobs_backup_locks SET expires_at = 0")
		h := s.handler(t)
		text, err := h.Unfinished(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		how := restore.How(i % 2) // as the next start does, or to the end where that is possible
		all, err := h.Settle(t.Context(), how)
		if err != nil && how == restore.Finish {
			all, err = h.Settle(t.Context(), restore.Undo)
		}
		if err != nil {
			t.Fatal(err)
		}
		v := s.state(t)
		if said := len(all) == 1; said != (text != "") || said && all[0].Restored != (v == 1) {
			t.Errorf("kill %d: %q, settled %+v, the site has version %d", i, text, all, v)
		}
		ends[fmt.Sprintf("version %d, known %v", v, text != "")]++
		s.constraints(t)
		if text, err := h.Unfinished(t.Context()); text != "" || err != nil {
			t.Errorf("kill %d: at the end: %s, %v", i, text, err)
		}
	}
	if left := temporaries(t, s.site); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	t.Logf("a restore takes %v; ends: %v", length, ends)
}

// runRestore restores in another process and kills it after a time, if it did not end
// before; 0 is never.
func (s *killSite) runRestore(t *testing.T, after time.Duration) (killed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), restoreChildEnv+"="+strings.Join([]string{s.Driver, s.DSN, s.files, s.dest,
		s.backupID}, "|"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	if after > 0 {
		kill := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
	}
	line, _ := lines.ReadString('\n')
	err = cmd.Wait()
	if cmd.ProcessState.ExitCode() < 0 {
		return true
	}
	if err != nil || line != "restored\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	return false
}
