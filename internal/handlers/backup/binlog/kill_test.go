package binlog

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// childEnv makes the test binary archive until it is killed.
const childEnv = "CMSJOBS_TEST_BINLOG_CHILD"

// archiving is what such a process is given.
type archiving struct {
	DSN, Place, Dir string
	Bases           []Base
}

func TestMain(m *testing.M) {
	if given := os.Getenv(childEnv); given != "" {
		fmt.Println("error", archiveUntilKilled(given))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func archiveUntilKilled(given string) error {
	var c archiving
	if err := json.Unmarshal([]byte(given), &c); err != nil {
		return err
	}
	place, err := storage.NewLocal(c.Place, storage.LocalOptions{})
	if err != nil {
		return err
	}
	a := NewArchiver(Config{DSN: c.DSN, Places: map[string]storage.Store{"local": place}, MostBytes: 2000, Dir: c.Dir,
		Bases:  func(context.Context, string) ([]Base, error) { return c.Bases, nil },
		Signer: func(context.Context) (manifest.Signer, error) { return signer, nil }})
	fmt.Println("ready")
	for {
		report, err := a.Pass(context.Background())
		if err != nil {
			return err
		}
		if p := report.Places["local"]; p.Err != nil || p.Gap != "" {
			return fmt.Errorf("%q, %w", p.Gap, p.Err)
		}
	}
}

// A process that archives is killed at any moment: the next one goes on where the archive
// ends, each byte is there once, and no file of the killed one is left in its way.
func TestKilledAtAnyMomentTheArchiveGoesOn(t *testing.T) {
	l := newLogged(t, jobstest.MariaDB)
	place := t.TempDir()
	store, err := storage.NewLocal(place, storage.LocalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	l.place, l.config.Places = store, map[string]storage.Store{"local": store}
	exec(t, l.db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT)")
	l.base(t)
	given, err := json.Marshal(archiving{l.dsn, place, l.config.Dir, l.bases})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		for n := range 60 {
			exec(t, l.db, fmt.Sprintf("INSERT INTO t (v) VALUES (REPEAT('%d', %d))", i, 10*n))
		}
		if i%3 == 2 {
			l.rotate(t)
		}
		killWhileArchiving(t, string(given))
	}
	a := NewArchiver(l.config)
	l.pass(t, a)
	if p := l.pass(t, a); p.Segments != 0 || p.Gap != "" || p.Reach.Missing != "" {
		t.Errorf("a pass with nothing new: %+v", p)
	}
	l.equal(t, 4)
	if left, err := filepath.Glob(filepath.Join(l.config.Dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files: %q, %v", left, err)
	}
}

// killWhileArchiving starts a process that archives and kills it.
func killWhileArchiving(t *testing.T, given string) {
	t.Helper()
	cmd := osexec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+given)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the process says %q, %v", line, err)
	}
	time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond) // a random moment, not a wait for something
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(said); err != nil || len(rest) > 0 {
		t.Fatalf("the process says %q, %v", rest, err)
	}
	_ = cmd.Wait() // it was killed
}
