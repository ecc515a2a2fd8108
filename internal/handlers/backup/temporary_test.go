package backup

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/dump"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/temporary"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// databases of our prefix on the server, or folders for SQLite.
func temporaries(t *testing.T, s *site) (names []string) {
	t.Helper()
	switch s.Engine {
	case jobstest.MariaDB, jobstest.MySQL:
		if err := s.Select(&names, "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE "+
			"'cmsjobs\\_verify\\_%'"); err != nil {
			t.Fatal(err)
		}
	case jobstest.PostgreSQL:
		if err := s.Select(&names,
			`SELECT datname FROM pg_database WHERE datname LIKE 'cmsjobs\_verify\_%'`); err != nil {
			t.Fatal(err)
		}
	default:
		found, err := filepath.Glob(filepath.Join(os.TempDir(), "cmsjobs-[vrd]*-*")) // verify, restore, dump
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			names = append(names, filepath.Base(f))
		}
	}
	return names
}

// killedVerification makes a temporary database as a verification does, and does not drop it.
func killedVerification(t *testing.T, h *Handler, b catalog.Stored) string {
	t.Helper()
	temp := h.NewDatabase(b.Engine)
	ctx, cancel := context.WithCancel(t.Context())
	_, claim, err := h.Claim(ctx, temp, "the verification of "+b.ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); claim.Release(context.Background()) })
	var made *temporary.Database
	switch b.Engine {
	case database.MySQL:
		made, err = temporary.OpenMySQL(ctx, h.c.DSN, temp.Name, dump.LoadOptions{})
	case database.PostgreSQL:
		made, err = temporary.OpenPostgres(ctx, h.c.DSN, temp.Name)
	default:
		made, err = temporary.OpenSQLite(temp.Name)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Load(dump.Main, "", []byte("-- nothing\n")); err != nil {
		t.Fatal(err)
	}
	_ = made.Close() // as its process's end does; what is missing in it does not matter
	return temp.Name
}

// expire ends locks as if their holders had been killed: nobody renews them any more.
func expire(s *site, name string) {
	s.MustExec(s.Rebind("UPDATE cmsjobs_backup_locks SET expires_at = started_at, holder = 'killed' WHERE name LIKE ?"),
		name)
}

func TestWhatKilledVerificationsLeaveIsSwept(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			s := newSite(t, engine)
			t.Setenv("TMPDIR", t.TempDir())
			h := s.handler(t)
			_, b := s.backup(t, h)
			if left := temporaries(t, s); len(left) > 0 {
				t.Fatalf("a good verification left %v", left)
			}
			dead, alive := killedVerification(t, h, b), killedVerification(t, h, b)
			stranger := temporary.DatabasePrefix + "strangerstra"
			if engine != jobstest.SQLite {
				s.MustExec("CREATE DATABASE " + stranger)
				t.Cleanup(func() { s.MustExec("DROP DATABASE " + stranger) })
			}
			expire(s, "%"+dead)
			health, err := h.Health(t.Context())
			if err != nil || !hasCode(health, "leftover") {
				t.Errorf("%+v, %v", health.Warnings, err)
			}
			s.backup(t, h) // sweeps
			left := strings.Join(temporaries(t, s), " ")
			if strings.Contains(left, dead) || !strings.Contains(left, alive) || engine != jobstest.SQLite &&
				!strings.Contains(left, stranger) {
				t.Errorf("left are %s; dead was %s, alive is %s", left, dead, alive)
			}
			expire(s, "temporary:%")
			if removed, err := h.Sweep(t.Context()); err != nil || len(removed) != 1 || removed[0] != alive {
				t.Errorf("%v, %v", removed, err)
			}
			if again, err := h.Sweep(t.Context()); err != nil || len(again) != 0 {
				t.Errorf("twice: %v, %v", again, err)
			}
		})
	}
}
