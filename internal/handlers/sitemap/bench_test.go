//go:build unix

package sitemap_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// BenchmarkMillion writes the addresses of a million posts, rows of MariaDB,
// into files of 1,000 and of 50,000. With CMSJOBS_PEER naming a folder with
// node_modules (npm install sitemap@9.0.1 mysql2@3.24.5) the same rows go
// through npm's sitemap in the same run:
//
//	CMSJOBS_PEER=/tmp/peer go test -run '^$' -bench Million -benchtime 1x ./internal/handlers/sitemap
//
// The metrics are of this process (node: of the child) without MariaDB: CPU
// seconds, and the largest resident memory.
func BenchmarkMillion(b *testing.B) {
	const posts = 1_000_000
	site, db := million(b, posts)
	connected, err := database.Connect(b.Context(), database.ConnectOptions{DSN: db.DSN}) // as the program does
	if err != nil {
		b.Fatal(err)
	}
	defer connected.Close()
	site.DB = connected
	kept := b.TempDir()
	for _, perFile := range []int{1000, 50_000} {
		b.Run(fmt.Sprintf("cmsjobs/%d", perFile), func(b *testing.B) {
			folder := folderOf(b, kept)
			h := handler(b, site, func(c *sitemap.Config) {
				c.Options.PerFile, c.Options.Stylesheet, c.Target = perFile, false, sitemap.Folder(folder)
			})
			resetPeak(b)
			start := cpu(b, syscall.RUSAGE_SELF)
			for b.Loop() {
				if r := write(b, h, true); r.URLs != posts+1 {
					b.Fatalf("%+v", r)
				}
			}
			b.ReportMetric((cpu(b, syscall.RUSAGE_SELF)-start).Seconds()/float64(b.N), "cpu-s/op")
			b.ReportMetric(peak(b), "peak-MB")
		})
	}
	b.Run("unchanged", func(b *testing.B) {
		h := handler(b, site, nil)
		write(b, h, false)
		for b.Loop() {
			if r := write(b, h, false); r.Unchanged == "" {
				b.Fatalf("%+v", r)
			}
		}
	})
	folder := os.Getenv("CMSJOBS_PEER")
	if folder == "" {
		return
	}
	port := jobstest.Shared(b, jobstest.MariaDB).Port
	name := strings.SplitN(strings.SplitN(db.DSN, "/", 2)[1], "?", 2)[0]
	for _, perFile := range []int{1000, 50_000} {
		b.Run(fmt.Sprintf("npm-sitemap/%d", perFile), func(b *testing.B) {
			peer(b, folder, folderOf(b, kept), port, name, perFile)
		})
	}
}

// million makes the rows inside the server.
func million(b *testing.B, posts int) (*cms.Site, *jobstest.Database) {
	b.Helper()
	db := jobstest.Migrated(b, jobstest.MariaDB)
	for _, statement := range []string{
		"CREATE TABLE settings (id int, `key` varchar(255), value text)",
		"CREATE TABLE slugs (id bigint unsigned PRIMARY KEY, `key` varchar(255), reference_id bigint unsigned, " +
			"reference_type varchar(255), prefix varchar(120), KEY (reference_id, reference_type))",
		"CREATE TABLE posts (id bigint unsigned PRIMARY KEY, name varchar(255), content text, status varchar(60), " +
			"image varchar(255), created_at timestamp NULL, updated_at timestamp NULL, KEY (status))",
		"CREATE TABLE meta_boxes (id int, meta_key varchar(255), meta_value text, reference_id bigint unsigned, " +
			"reference_type varchar(120), KEY (reference_id))",
		"INSERT INTO settings VALUES (1, 'theme', 'ripple')",
		fmt.Sprintf("INSERT INTO posts SELECT seq, 'A post', REPEAT('x', 200), 'published', NULL, '2026-01-01' + "+
			"INTERVAL seq SECOND, '2026-02-01' + INTERVAL seq SECOND FROM %s", jobstest.Numbers(posts)),
		fmt.Sprintf("INSERT INTO slugs SELECT seq, CONCAT('a-post-with-a-title-of-usual-length-', seq), seq, "+
			"'Botble\\\\Blog\\\\Models\\\\Post', 'news' FROM %s", jobstest.Numbers(posts)),
		"ANALYZE TABLE posts, slugs",
	} {
		execute(b, db, statement)
	}
	return siteAt(b, db), db
}

func peer(b *testing.B, folder, output string, port int, database string, perFile int) {
	script, err := filepath.Abs(filepath.Join("testdata", "peer.cjs"))
	if err != nil {
		b.Fatal(err)
	}
	start := cpu(b, syscall.RUSAGE_CHILDREN)
	var most float64
	for b.Loop() {
		node := exec.Command("node", script, strconv.Itoa(port), database, strconv.Itoa(perFile), output)
		node.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(folder, "node_modules"))
		if out, err := node.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		if usage, ok := node.ProcessState.SysUsage().(*syscall.Rusage); ok {
			most = max(most, float64(usage.Maxrss)/1024)
		}
	}
	b.ReportMetric((cpu(b, syscall.RUSAGE_CHILDREN)-start).Seconds()/float64(b.N), "cpu-s/op")
	b.ReportMetric(most, "peak-MB")
}

// folderOf makes a folder of a benchmark in one that is removed at the end of
// all: where a thousand files have just been removed, ext4 takes half a second
// of processor time to make a thousand others.
func folderOf(b *testing.B, kept string) string {
	b.Helper()
	folder, err := os.MkdirTemp(kept, "")
	if err != nil {
		b.Fatal(err)
	}
	return folder
}

func cpu(b *testing.B, who int) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(who, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// resetPeak makes the kernel measure the largest resident memory again.
func resetPeak(b *testing.B) {
	b.Helper()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Logf("the peak is of the whole run: %v", err)
	}
}

func peak(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kB, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				b.Fatal(err)
			}
			return float64(kB) / 1024
		}
	}
	return 0
}
