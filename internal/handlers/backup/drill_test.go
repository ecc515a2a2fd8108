package backup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// The torture database and the CMS's own go through a whole backup and are
// brought back by tar, zstd and the plain client alone, as docs/operating.md
// tells an owner whose server burnt down.
func TestTheDrillNeedsNothingOfOurs(t *testing.T) {
	jobstest.EachMySQL(t, testTheDrillNeedsNothingOfOurs)
}

func testTheDrillNeedsNothingOfOurs(t *testing.T, engine jobstest.Engine) {
	jobstest.AsRoot(t)
	for _, fixture := range []string{"dump/testdata/torture." + string(engine) + ".sql",
		jobstest.Fixture(t, "database.sql")} {
		t.Run(filepath.Base(fixture), func(t *testing.T) {
			if strings.Contains(fixture, "torture") {
				jobstest.NeedTorture(t, engine)
			}
			s := newSite(t, engine)
			s.MustExec("DROP TABLE posts, cache")
			sh(t, s.Database, `$CLIENT < "$1"`, fixture)
			s.c.Options.EmptyTables = []string{"nothing"}
			_, b := s.backup(t, s.handler(t))
			dir, to := t.TempDir(), jobstest.Open(t, engine)
			sh(t, to, `sha256sum "$1/$2" | grep -q ^`+b.SHA256+`
				cd "$3"; tar --zstd -xf "$1/$2"
				cat database/*.sql | $CLIENT
				if [ -d routines ]; then cat routines/*.sql | $CLIENT; fi`, s.dest, b.Archive, dir)
			for _, table := range b.Tables {
				if strings.HasPrefix(table.Name, ledgerPrefix) {
					continue // dumped without rows
				}
				if s.Engine == jobstest.MySQL &&
					slices.Contains([]string{"js", "types", "functional", "huge", "jsonlong"}, table.Name) {
					continue // MySQL's sum of a JSON value is of how it lies on the disk
				}
				if was, is := checksumTable(t, s.Database, table.Name), checksumTable(t, to, table.Name); was != is {
					t.Errorf("CHECKSUM TABLE %s is %s, was %s", table.Name, is, was)
				}
			}
			if got, err := os.ReadFile(filepath.Join(dir, "files", "storage", "a.txt")); string(got) != "hello" ||
				err != nil {
				t.Errorf("a.txt holds %q, %v", got, err)
			}
		})
	}
}

// plainClient is the program that speaks to an engine, of the same maker.
func plainClient(t *testing.T, engine jobstest.Engine) string {
	t.Helper()
	if engine != jobstest.MySQL {
		return "mariadb"
	}
	path, err := jobstest.MySQLProgram("mysql")
	if err != nil {
		jobstest.Skip(t, "%v", err)
	}
	return path
}

// sh runs a script in which $CLIENT is the plain client on a database.
func sh(t *testing.T, db *jobstest.Database, script string, args ...string) {
	t.Helper()
	c, err := mysql.ParseDSN(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(c.Addr, ":")
	cmd := exec.Command("bash", append([]string{"-c", "set -e -o pipefail; " + script, "sh"}, args...)...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("CLIENT=%s --no-defaults --default-character-set=utf8mb4 -h %s -P %s "+
		"-u %s %s", plainClient(t, db.Engine), host, port, c.User, c.DBName))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func checksumTable(t *testing.T, db *jobstest.Database, table string) string {
	t.Helper()
	var name string
	var sum *string
	if err := db.QueryRow("CHECKSUM TABLE `"+strings.ReplaceAll(table, "`", "``")+"`").Scan(&name, &sum); err != nil {
		t.Fatal(err)
	}
	if sum == nil {
		return "nothing"
	}
	return *sum
}
