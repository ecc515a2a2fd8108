package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/conditions"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// Evaluating the conditions of an idle installation that makes backups and has a
// schedule costs at most 6 statements a round on average.
func TestIdleConditionsAskTheDatabaseLittle(t *testing.T) {
	jobstest.EachMySQL(t, func(t *testing.T, engine jobstest.Engine) {
		port := jobstest.Shared(t, engine).Port
		db := jobstest.Open(t, engine)
		if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("CREATE TABLE settings (id INT PRIMARY KEY, `key` VARCHAR(191), value TEXT)"); err != nil {
			t.Fatal(err)
		}
		proxy := jobstest.NewProxy(t, port)
		dsn := strings.Replace(db.DSN, fmt.Sprint(":", port), fmt.Sprint(":", proxy.Port), 1)
		empty := filepath.Join(t.TempDir(), "empty.yaml")
		if err := os.WriteFile(empty, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := config.Load(config.Sources{
			Environ: []string{"CMSJOBS_CONFIG=" + empty, "CMSJOBS_DATABASE_DSN=" + dsn, "CMSJOBS_BACKUP_DIR=" +
				filepath.Join(t.TempDir(), "backups")}})
		if err != nil {
			t.Fatal(err)
		}
		process := app.Process{Err: io.Discard, Now: time.Now}
		r, err := process.Open(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if s, err := r.Scheduler(); err != nil || len(s.Names()) == 0 || r.Handlers.Backup == nil {
			t.Fatalf("nothing is scheduled or backed up: %v", err)
		}
		// This process schedules, so that nothing is wrong.
		e, err := r.Evaluator(&conditions.Process{ID: "idle", Host: "here", Scheduled: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			e.Evaluate(t.Context())
		}
		const rounds = 20
		before := proxy.Commands()
		for range rounds {
			for _, s := range e.Evaluate(t.Context()) {
				if s.Active || s.Err != nil {
					t.Fatalf("the installation is not idle: %+v", s)
				}
			}
		}
		if each := float64(proxy.Commands()-before) / rounds; each > 6 || each < 1 {
			t.Errorf("an evaluation asks %.1f statements", each)
		}
	})
}
