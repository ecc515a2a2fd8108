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
	t.Parallel()
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

// Under a Vietnamese locale doctor speaks as the pages do; what other programs read stays English.
func TestDoctorSpeaksTheLanguageOfTheAccount(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	args := []string{dsn, "--set", "backup.dir=" + t.TempDir(), "doctor"}
	vietnamese := call(t, []string{"LC_ALL=vi_VN.UTF-8"}, args...).out
	for _, must := range []string{"không có tiến trình nào chạy", "còn đủ số dòng", "chưa cấu hình bucket"} {
		if !strings.Contains(vietnamese, must) {
			t.Errorf("it does not say %q:\n%s", must, vietnamese)
		}
	}
	for what, out := range map[string]string{
		"English": call(t, []string{"LANG=en_US.UTF-8"}, args...).out,
		"JSON":    call(t, []string{"LC_ALL=vi_VN.UTF-8"}, append([]string{"--json"}, args...)...).out,
	} {
		if !strings.Contains(out, "no worker runs") || strings.Contains(out, "tiến trình") {
			t.Errorf("%s:\n%s", what, out)
		}
	}
}
