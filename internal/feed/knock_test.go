package feed

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/jobs/wake"
)

// The Laravel package notifies of a job when it is committed, neither before nor
// when it is rolled back.
func TestTheLaravelPackageNotifies(t *testing.T) {
	if _, err := exec.LookPath("php"); err != nil {
		jobstest.Skip(t, "no php: %v", err)
	}
	if _, err := os.Stat("/usr/share/php/Illuminate/autoload.php"); err != nil {
		jobstest.Skip(t, "no Laravel: %v", err)
	}
	s := newSite(t, jobstest.Open(t, jobstest.MariaDB))
	c, err := mysql.ParseDSN(s.Database.DSN)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(c.Addr)
	path := filepath.Join(t.TempDir(), "cmsjobs.sock")
	sent := &recorded{&Knock{Path: path}, make(chan Row, 10)}
	h := listen(t, sent)
	php := exec.CommandContext(t.Context(), "php", filepath.Join("..", "..", "sdk", "php", "tests", "socket.php"))
	php.Env = append(os.Environ(), "DB_PORT="+port, "DB_DATABASE="+c.DBName, "CMSJOBS_SOCKET="+path)
	php.Stderr = os.Stderr
	in, err := php.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := php.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := php.Start(); err != nil {
		t.Fatal(err)
	}
	defer php.Wait()
	lines := bufio.NewScanner(out)
	marker := func() { // datagrams keep their order: what PHP sent comes before this
		conn, err := net.Dial("unixgram", path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("jobs")); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name string
		sent int
	}{{"plain", 1}, {"open", 0}, {"committed", 1}, {"rolled back", 0}, {"of Laravel", 1}, {"of Redis", 0}, {"content", 0}} {
		if !lines.Scan() || lines.Text() != step.name {
			t.Fatalf("PHP says %q instead of %q", lines.Text(), step.name)
		}
		marker()
		if step.name == "content" {
			h.says(t, Edited, step.name)
		}
		for range step.sent + 1 {
			h.says(t, Inserted, step.name)
		}
		time.Sleep(20 * time.Millisecond)
		if len(h) > 0 {
			t.Errorf("%s: more than %d datagrams", step.name, step.sent)
		}
		if step.sent > 0 && step.name != "of Laravel" {
			s.hasRow(t, sent.rows, step.name)
		}
		if _, err := in.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
	}
	lines.Scan()
	took, nobody, ok := strings.Cut(lines.Text(), " ")
	if !ok {
		t.Fatalf("PHP says %q", lines.Text())
	}
	t.Logf("a datagram takes %s µs, %s µs where nobody listens", took, nobody)
}

// recorded keeps the rows that a source names.
type recorded struct {
	Source
	rows chan Row
}

func (r *recorded) Run(ctx context.Context, report Told) error {
	return r.Source.Run(ctx, func(what Report, rows ...Row) {
		for _, row := range rows {
			r.rows <- row
		}
		report(what, rows...)
	})
}

// hasRow takes the row that was sent, and finds it so in the table.
func (s *site) hasRow(t *testing.T, rows <-chan Row, step string) {
	t.Helper()
	if len(rows) == 0 {
		t.Errorf("%s: no row was sent", step)
		return
	}
	queue, text, _ := strings.Cut((<-rows).Job, "\n")
	row, ok := tables.Sent(text)
	if !ok {
		t.Fatalf("%s: %q is no row", step, text)
	}
	row.Seen = time.Now().Unix()
	same, args := s.Tables.AsSent(queue, row)
	var n int
	if err := s.Database.Get(&n, fmt.Sprintf("SELECT COUNT(*) FROM jobs WHERE id = %d AND ", row.ID)+same,
		args...); err != nil || n != 1 {
		t.Errorf("%s: %q of %q is not in the table: %v", step, text, queue, err)
	}
}

// A socket that a dead process left is taken over, and removed at the end.
func TestASocketThatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cmsjobs.sock")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Try(t.Context(), &Knock{Path: path}, 10*time.Second); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	needs(t, Try(t.Context(), &Knock{Path: "/" + strings.Repeat("x", 200)}, time.Second), "too long")
}

// A socket among those of the workers gets the wake-ups that its datagrams cause: they
// cause no more of them.
func TestASocketAmongThoseOfWorkers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "php.sock")
	h := listen(t, &Knock{Path: path})
	if n := wake.Call(dir, wake.Jobs, "default") + wake.Call(dir, wake.Jobs, ""); n != 2 {
		t.Fatalf("%d of 2 wake-ups arrive: this tests nothing", n)
	}
	conn, err := net.Dial("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, message := range []string{"jobs", "content"} { // they keep their order
		if _, err := conn.Write([]byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	for said := 0; ; said++ {
		select {
		case r := <-h:
			if r == Inserted {
				continue
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the last datagram does not arrive")
		}
		if said != 1 {
			t.Errorf("%d datagrams are taken for news of jobs, want PHP's alone", said)
		}
		return
	}
}

// A socket that works slows no looks down: programs without the package send nothing.
func TestASocketIsNoReasonToLookSeldom(t *testing.T) {
	s := newSite(t, jobstest.Open(t, jobstest.SQLite))
	o := s.options(t)
	o.Partial = []Source{&bell{}}
	w := New(o)
	w.sources[0].report(Alive)
	if d := w.wait(time.Now()); d > o.Idle {
		t.Errorf("beside a socket it waits %v", d)
	}
}
