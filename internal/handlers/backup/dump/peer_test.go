//go:build unix

package dump

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/klauspost/pgzip"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// BenchmarkBesidePeers dumps and restores one generated database by us and by
// the usual tools, into files on the same disk, all made durable in the end. Beside the
// time by the clock it reports that of processors (cpu-s/op): of this process and of the
// tools, without the server's:
//
//	CMSJOBS_BENCH_POSTS=100000 go test -run - -bench BesidePeers -benchtime 3x ./internal/handlers/backup/dump
func BenchmarkBesidePeers(b *testing.B) {
	posts := 2000
	if n, err := strconv.Atoi(os.Getenv("CMSJOBS_BENCH_POSTS")); err == nil {
		posts = n
	}
	db := jobstest.Open(b, jobstest.MariaDB)
	generate(b, db, posts)
	dir := b.TempDir()
	c, err := mysql.ParseDSN(db.DSN)
	if err != nil {
		b.Fatal(err)
	}
	host, port, _ := strings.Cut(c.Addr, ":")
	account := fmt.Sprintf("-h %s -P %s -u %s", host, port, c.User)
	file := filepath.Join(dir, "dump")
	own := func(end string, pack func(io.Writer) (io.WriteCloser, error)) func() error {
		return func() error { return dumpTo(b.Context(), db.DSN, file+end, pack) }
	}
	shell := func(command string) func() error {
		return func() error {
			out, err := exec.Command("bash", "-c", "set -e -o pipefail; "+command).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		}
	}
	tool := "mariadb-dump --no-defaults " + account + " --single-transaction --quick --hex-blob " + c.DBName
	for _, peer := range []struct {
		name string
		run  func() error
	}{
		{"dump/own-plain", own("", nil)},
		{"dump/own-zstd", own(".own.zst", archive.NewZstd)},
		{"dump/own-pgzip", own(".own.gz", func(w io.Writer) (io.WriteCloser, error) {
			return pgzip.NewWriter(w), nil
		})},
		// What the reference's own fastest level needs for the same text, without a dump.
		{"dump/zstd-1-of-own-plain", shell("zstd -qf -1 --single-thread " + file + " -o " + file + ".zst")},
		{"dump/mariadb-dump-plain", shell(tool + " > " + file + ".peer; sync " + file + ".peer")},
		{"dump/mariadb-dump-gzip", shell(tool + " | gzip > " + file + ".gz; sync " + file + ".gz")},
		{"dump/mariadb-dump-zstd-T2", shell(tool + " | zstd -qf -T2 -o " + file + ".zst; sync " + file + ".zst")},
		{"dump/mydumper-t2", shell("rm -rf " + dir + "/my; mydumper " + account + " -B " + c.DBName +
			" -t 2 --compress -o " + dir + "/my; sync " + dir + "/my/*")},
		{"dump/mydumper-t2-plain", shell("rm -rf " + dir + "/my; mydumper " + account + " -B " + c.DBName +
			" -t 2 -o " + dir + "/my; sync " + dir + "/my/*")},
		{"dump/mydumper-t2-rows", shell("rm -rf " + dir + "/rows; mydumper " + account + " -B " + c.DBName +
			" -t 2 -r 5000 -o " + dir + "/rows; sync " + dir + "/rows/*")},
		{"restore/client-mariadb-dump-file", shell("mariadb --no-defaults " + account + " " + c.DBName + " < " + file +
			".peer")},
		{"restore/client-own-file", shell("mariadb --no-defaults " + account + " " + c.DBName + " < " + file)},
		{"restore/own-parallel", func() error { return loadFrom(b.Context(), db.DSN, file) }},
		{"restore/myloader-t2", shell("myloader " + account + " -B " + c.DBName + " -o -t 2 -d " + dir + "/my")},
		{"restore/myloader-t4", shell("myloader " + account + " -B " + c.DBName + " -o -t 4 -d " + dir + "/my")},
		// Its files are cut by rows: it loads one table over several connections.
		{"restore/myloader-t2-rows", shell("myloader " + account + " -B " + c.DBName + " -o -t 2 -d " + dir + "/rows")},
	} {
		b.Run(peer.name, func(b *testing.B) {
			var cpu, server time.Duration
			for b.Loop() {
				if strings.HasPrefix(peer.name, "restore/") { // each into an empty database
					b.StopTimer()
					db.MustExec("DROP DATABASE " + c.DBName)
					db.MustExec("CREATE DATABASE " + c.DBName)
					b.StartTimer()
				}
				before, theirs := processorTime(), serverTime()
				if err := peer.run(); err != nil {
					b.Skip(err)
				}
				cpu += processorTime() - before
				server += serverTime() - theirs
			}
			b.ReportMetric(cpu.Seconds()/float64(b.N), "cpu-s/op")
			b.ReportMetric(server.Seconds()/float64(b.N), "server-s/op")
		})
	}
}

// processorTime is what this process and those that it waited for have used.
func processorTime() time.Duration {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}

// serverTime is what all servers of this host have used.
func serverTime() time.Duration {
	var ticks int
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range files {
		data, _ := os.ReadFile(name)
		_, after, found := strings.Cut(string(data), " (mariadbd) ")
		if fields := strings.Fields(after); found && len(fields) > 13 {
			user, _ := strconv.Atoi(fields[11])
			system, _ := strconv.Atoi(fields[12])
			ticks += user + system
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

func dumpTo(ctx context.Context, dsn, name string, pack func(io.Writer) (io.WriteCloser, error)) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	var w io.WriteCloser = f
	if pack != nil {
		if w, err = pack(f); err != nil {
			return err
		}
	}
	if _, err := MySQL(ctx, dsn, Options{}, func(_ Part, _ string, sql []byte) error {
		_, err := w.Write(sql)
		return err
	}); err != nil {
		return err
	}
	if pack != nil {
		if err := w.Close(); err != nil {
			return err
		}
	}
	return f.Sync()
}

// loadFrom restores a plain dump as a restore of ours does: by table, in pieces.
func loadFrom(ctx context.Context, dsn, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	l, err := NewLoader(ctx, dsn, LoadOptions{})
	if err != nil {
		return err
	}
	in, table, piece := bufio.NewReaderSize(f, 2<<20), "", make([]byte, 0, 4<<20)
	for err == nil {
		var line []byte
		line, err = in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			err = nil
		}
		next, begins := bytes.CutPrefix(line, []byte("-- Table "))
		if begins || len(piece) > 1<<20 {
			if err := l.Load(Main, table, piece); err != nil {
				return err
			}
			piece = piece[:0]
		}
		if begins {
			table = string(bytes.TrimSpace(next))
		}
		piece = append(piece, line...)
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	return errors.Join(l.Load(Main, table, piece), l.Close())
}

// generate makes the tables of a CMS with so many posts: about 6 KB of SQL each.
func generate(b testing.TB, db *jobstest.Database, posts int) {
	b.Helper()
	for _, statement := range []string{
		"CREATE TABLE posts (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, name VARCHAR(255), description " +
			"VARCHAR(400), content LONGTEXT, status VARCHAR(60) DEFAULT 'published', author_id BIGINT, is_featured " +
			"TINYINT, image VARCHAR(255), views INT, created_at TIMESTAMP NULL, updated_at TIMESTAMP NULL, KEY " +
			"(status), KEY (author_id), KEY (created_at)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci",
		"CREATE TABLE slugs (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, `key` VARCHAR(255), reference_id BIGINT, " +
			"reference_type VARCHAR(255), prefix VARCHAR(120), KEY (`key`), KEY (reference_id)) DEFAULT " +
			"CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci",
		"CREATE TABLE meta_boxes (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, meta_key VARCHAR(255), meta_value " +
			"TEXT, reference_id BIGINT, KEY (reference_id)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci",
	} {
		db.MustExec(statement)
	}
	words := strings.Fields("<p>lorem</p> ipsum dolor 'sit' amet, consectetur adipiscing elit sed do eiusmod " +
		"<b>tempor</b> incididunt ut labore et dolore \"magna\" aliqua ünïcode 😀 été")
	state := uint64(1)
	text := func(n int) string {
		var s strings.Builder
		for s.Len() < n {
			state = state*6364136223846793005 + 1442695040888963407
			s.WriteString(words[state>>33%uint64(len(words))])
			fmt.Fprintf(&s, " %x ", state>>52)
		}
		return s.String()
	}
	for from := 0; from < posts; from += 500 {
		tx := db.MustBegin()
		for id := from + 1; id <= min(from+500, posts); id++ {
			tx.MustExec("INSERT INTO posts (name, description, content, author_id, is_featured, image, views, "+
				"created_at) VALUES (?, ?, ?, ?, ?, ?, ?, '2024-01-01 00:00:00')",
				text(60), text(200), text(5000), id%50, id%2, "news/"+strconv.Itoa(id)+".jpg", id*7)
			tx.MustExec("INSERT INTO slugs (`key`, reference_id, reference_type, prefix) VALUES (?, ?, "+
				"'Botble\\\\Blog\\\\Models\\\\Post', '')", text(50), id)
			tx.MustExec("INSERT INTO meta_boxes (meta_key, meta_value, reference_id) VALUES ('seo_meta', ?, ?)",
				text(150), id)
		}
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC()
}
