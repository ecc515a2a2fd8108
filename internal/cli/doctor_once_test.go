package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/conditions"
	"github.com/cmsjobs/cmsjobs/internal/doctor"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// What a check finds and a condition says too is said once: by the check while
// it is young, by the condition when it holds.
func TestDoctorSaysALeftoverOnce(t *testing.T) {
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	args := []string{dsn, "--json", "--set", "backup.dir=" + t.TempDir(), "doctor"}
	call(t, nil, args...)
	db := openSQLite(t, dsn)
	db.MustExec("INSERT INTO cmsjobs_backup_locks (name, holder, host, purpose, started_at, expires_at) VALUES (?, "+
		"'', 'gone', 'a verification', ?, 0)", deadVerification, time.Now().UnixMilli())
	db.MustExec("INSERT OR IGNORE INTO cmsjobs_conditions (name, active, pending_since, changed_at, seen_at, " +
		"seen_by, detail) VALUES ('temp_databases_left', 0, 0, 0, 0, '', '')")
	says := func() map[string]int {
		found := map[string]int{}
		for _, f := range answer[[]doctor.Finding](t, call(t, nil, args...)) {
			if f.Check == conditions.TempDatabasesLeft || f.Check == "backups" &&
				strings.Contains(f.What, "killed verifications or restores left") {
				found[f.Check]++
			}
		}
		return found
	}
	if young := says(); young["backups"] != 1 || young[conditions.TempDatabasesLeft] != 0 {
		t.Errorf("a young leftover is said %v", young)
	}
	db.MustExec("UPDATE cmsjobs_conditions SET pending_since = ? WHERE name = 'temp_databases_left'",
		time.Now().Add(-5*time.Hour).UnixMilli())
	if old := says(); old["backups"] != 0 || old[conditions.TempDatabasesLeft] != 1 {
		t.Errorf("an old leftover is said %v", old)
	}
}
