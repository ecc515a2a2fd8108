package backup

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/binlog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/lock"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// looks is how often the server was asked for the list of its log's files.
func (s *site) looks(t *testing.T) (n int) {
	t.Helper()
	var name string
	row := s.QueryRow("SHOW GLOBAL STATUS LIKE 'Com_show_binlogs'")
	if err := row.Scan(&name, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A turn of the running service looks at the server once, and archives.
func TestTheServiceArchivesTheLog(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		s := newLoggedSite(t, engine)
		s.c.Options.LogEvery = time.Hour // one turn
		h := s.handler(t)
		s.backup(t, h)
		s.MustExec("INSERT INTO posts VALUES (1000, 'later', 'x')")
		before := s.looks(t)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var ended sync.WaitGroup
		ended.Go(func() {
			if err := h.ArchiveLog(ctx); err != nil {
				t.Error(err)
			}
		})
		for archived := false; !archived && ctx.Err() == nil; {
			reach, err := h.LogReach(ctx)
			if err != nil {
				t.Fatal(err)
			}
			archived = len(reach["local"].Windows) == 1
		}
		stop()
		ended.Wait()
		if n := s.looks(t) - before; n != 1 {
			t.Errorf("the server was looked at %d times", n)
		}
		reach, err := h.LogReach(t.Context())
		if err != nil || len(reach["local"].Windows) != 1 || reach["local"].Missing != "" {
			t.Errorf("%+v, %v", reach, err)
		}
	})
}

// A server whose log cannot be archived is looked at by the process that has the lock;
// what is missing is said once.
func TestAMissingLogIsSaidOnce(t *testing.T) {
	for _, mode := range []LogMode{LogOn, LogAuto} {
		t.Run(string(mode), func(t *testing.T) {
			s := newSite(t, jobstest.MariaDB) // writes no log
			var log bytes.Buffer
			s.c.Logger = slog.New(slog.NewTextHandler(&log, nil))
			s.c.Options.Log = mode
			h := s.handler(t)
			turns := newLogTurns(h)
			if _, l, err := h.locks.Acquire(t.Context(), lock.Request{Name: logArchive}); err != nil {
				t.Fatal(err)
			} else if err := turns.turn(t.Context()); err != nil {
				t.Errorf("while another archives: %v", err)
			} else {
				l.Release(t.Context())
			}
			var missing *binlog.MissingError
			for range 3 {
				if err := turns.turn(t.Context()); !errors.As(err, &missing) {
					t.Fatalf("the turn says %v", err)
				}
			}
			want := 0
			if mode == LogOn {
				want = 1
			}
			if n := strings.Count(log.String(), "backup.log_failed"); n != want {
				t.Errorf("said %d times:\n%s", n, &log)
			}
			trouble, err := h.LogTrouble(t.Context())
			if err != nil || (trouble != "") != (mode == LogOn) || want > 0 && !strings.Contains(trouble, missing.Fix) {
				t.Errorf("the condition says %q, %v", trouble, err)
			}
		})
	}
}

// Behind the end of the archive nothing is known of a log that cannot be read: no moment
// there is said to be restored.
func TestNoMomentBehindALogThatCannotBeRead(t *testing.T) {
	s := newLoggedSite(t, jobstest.MariaDB)
	h := s.handler(t)
	s.backup(t, h)
	if text, err := h.archiveOnce(t.Context(), h.newArchiver()); text != "" || err != nil {
		t.Fatal(text, err)
	}
	s.MustExec("INSERT INTO posts VALUES (1000, 'later', 'x')")
	at := s.second(t)
	s.c.LogDSN = s.account(t, "nobody", jobstest.MariaDB)
	if _, err := s.handler(t).FindMoment(t.Context(), at, ""); !errors.Is(err, ErrNoMoment) ||
		!strings.Contains(err.Error(), "cannot be read now") {
		t.Errorf("a moment that is not archived: %v", err)
	}
	if _, err := h.FindMoment(t.Context(), at, ""); err != nil {
		t.Error(err)
	}
}

// The right that a restore to a moment needs is asked for before somebody is in need.
func TestTheRightToReplayIsKnownBefore(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		right := "REPLICATION_APPLIER"
		if engine == jobstest.MariaDB {
			right = "BINLOG REPLAY"
		}
		s := newLoggedSite(t, engine)
		s.c.DSN = s.account(t, "restorer", engine)
		h := s.handler(t)
		var missing *binlog.MissingError
		if err := h.RightToReplay(t.Context()); !errors.As(err, &missing) || !strings.Contains(missing.Fix, right) {
			t.Errorf("without the right: %v", err)
		}
		s.MustExec("GRANT " + right + " ON *.* TO restorer@'%'")
		if err := h.RightToReplay(t.Context()); err != nil {
			t.Errorf("with the right: %v", err)
		}
	})
}

// account makes an account without rights of the whole server, and is its DSN.
func (s *site) account(t *testing.T, name string, engine jobstest.Engine) string {
	t.Helper()
	s.MustExec("CREATE USER " + name + "@'%' IDENTIFIED BY 'x'")
	if engine == jobstest.MariaDB { // where a nameless account may be more specific
		s.MustExec("DROP USER IF EXISTS ''@localhost")
	}
	c, err := mysql.ParseDSN(s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	c.User, c.Passwd, c.DBName = name, "x", ""
	return c.FormatDSN()
}
