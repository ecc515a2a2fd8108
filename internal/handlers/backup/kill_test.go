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
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/retention"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// childEnv makes the test binary make backups until it is killed.
const childEnv = "CMSJOBS_TEST_BACKUP_CHILD"

func TestMain(m *testing.M) {
	if args := os.Getenv(childEnv); args != "" {
		if err := child(strings.Split(args, "|")); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	if args := os.Getenv(restoreChildEnv); args != "" {
		if err := restoreChild(strings.Split(args, "|")); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func child(args []string) error {
	db, err := sqlx.Open("sqlite", args[0])
	if err != nil {
		return err
	}
	files, err := storage.NewLocal(args[1], storage.LocalOptions{})
	if err != nil {
		return err
	}
	dest, err := storage.NewLocal(args[2], storage.LocalOptions{})
	if err != nil {
		return err
	}
	h, err := New(Config{Site: &cms.Site{DB: db}, DB: db, DSN: args[0], Destinations: map[string]storage.Store{
		"local": dest},
		Files: []fileset.Set{{Label: "storage", Store: files}}, Options: Options{Retention: retention.Rules{Keep: 3},
			MinFree: 1, Form: Form(args[3])}, Now: time.Now, Logger: discard()})
	if err != nil {
		return err
	}
	// the killed one's would hold for minutes
	if _, err := db.Exec("DELETE FROM cmsjobs_backup_locks WHERE name = 'backup'"); err != nil {
		return err
	}
	fmt.Println("ready")
	for {
		if _, err := h.Create(context.Background(), Request{Database: true, Files: true}, nil); err != nil {
			return err
		}
	}
}

// Whatever moment a backup is killed at, what counts as good is whole.
func TestKilledAtAnyMomentTheOthersStayWhole(t *testing.T) {
	for _, form := range []Form{InArchive, InRepository} {
		t.Run(string(form), func(t *testing.T) { testKilledAtAnyMoment(t, form) })
	}
}

func testKilledAtAnyMoment(t *testing.T, form Form) {
	s := newSite(t, jobstest.SQLite)
	s.c.Options.Form = form
	s.backup(t, s.handler(t))
	for i := range jobstest.Size(t, jobstest.Kills, 8, 100) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+strings.Join([]string{s.DSN, s.files, s.dest, string(form)}, "|"))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if line != "ready\n" {
			t.Fatalf("the child says %q, %v", line, err)
		}
		time.Sleep(time.Duration(rand.IntN(250)) * time.Millisecond) // a random moment, not a wait for something
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Error("the child ended by itself")
		}
		endLocks(t, s)
		h := s.handler(t)
		all, err := h.List(t.Context(), "")
		if err != nil || len(all) == 0 {
			t.Fatalf("kill %d: %d backups, %v", i, len(all), err)
		}
		for _, b := range all {
			if _, err := h.Verify(t.Context(), b, manifest.LevelParsed, nil); err != nil {
				t.Errorf("kill %d: %v", i, err)
			}
		}
	}
	leftoversAreSwept(t, s)
}

// endLocks lets the leases of killed processes pass.
func endLocks(t *testing.T, s *site) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(s.dest, "repository", "locks", "*"))
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	for _, name := range names {
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
}

// leftoversAreSwept: a day later the next backup removes what the killed left.
func leftoversAreSwept(t *testing.T, s *site) {
	t.Helper()
	s.MustExec("DELETE FROM cmsjobs_backup_locks WHERE name = 'backup'")
	s.clock.now = time.Now().Add(sweepAge + time.Hour)
	h := s.handler(t)
	s.backup(t, h)
	all, err := h.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := filepath.Glob(filepath.Join(s.dest, "backup-*"))
	if err != nil || len(entries) != 2*len(all) {
		t.Errorf("%d files for %d backups, %v", len(entries), len(all), err)
	}
	recordsAreThoseOf(t, h, all)
}
