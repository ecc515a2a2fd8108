package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// shellWorker is a queue:work that is no PHP: it asks for one job, keeps what it is given, and
// says that it is done. "schedule:run" says that it ran.
const shellWorker = `
case "$1" in schedule:run) echo "scheduled in $(pwd) $CMSJOBS_CONFIG"; exit;; esac
nice > nice.new; mv nice.new nice
touch asked
printf '\000\000\000\013{"hello":2}\000\000\000\015{"more":true}' >&4
dd bs=1 count=4 <&3 >/dev/null 2>&1
dd bs=1 count=8 <&3 2>/dev/null > got.new; mv got.new got
trap 'exit 0' TERM
while :; do sleep 0.1; done
`

// A row of PHP's that another program inserts reaches a process at once: the pool itself
// looks only once an hour. And the timetable has schedule:run.
func TestTheServiceRunsPHPsJobsAndItsSchedule(t *testing.T) {
	db := jobstest.Open(t, jobstest.SQLite)
	if _, err := tables.CreateTables(t.Context(), db.DB, tables.Stock, ""); err != nil {
		t.Fatal(err)
	}
	site := t.TempDir()
	if err := os.WriteFile(filepath.Join(site, "artisan"), []byte(shellWorker), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startService(t, "queue: {worker: false}\nfeed: {probe: 20ms}\nphp: {enabled: true, schedule: true, binary: sh, "+
		"artisan: "+filepath.Join(site, "artisan")+", poll: 1h, queues: {php: {processes: 1, nice: 3}}}\n", "--dsn="+dsnOf(db))
	awaitFile(t, filepath.Join(site, "asked"))
	time.Sleep(200 * time.Millisecond) // its first look has found nothing
	db.MustExec("INSERT INTO jobs (queue, payload, attempts, available_at, created_at) VALUES ('php', ?, 0, 1, 1)",
		phpPayload)
	awaitFile(t, filepath.Join(site, "got"))
	if said, want := niceness(t, "cat", filepath.Join(site, "nice")), niceness(t, "nice", "-n", "3", "nice"); said != want {
		t.Errorf("the process has the niceness %s, want %s", said, want)
	}
	s.command("schedule", "run", "php.schedule")
	s.command("work", "--stop-when-empty", "--queue=cmsjobs")
	other := exec.Command("sh", "-c", "while :; do sleep 1; done", filepath.Join(site, "artisan"), "queue:work", "--queue=mail,php")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait() // it was killed
	}()
	if said := s.command("doctor"); !strings.Contains(said, "queue:work listens to php, too") {
		t.Errorf("doctor does not name the other worker:\n%s", said)
	}
	var result string
	if err := db.Get(&result, "SELECT result FROM cmsjobs_runs WHERE type = 'command.run'"); err != nil {
		t.Fatal(err)
	}
	var out struct{ Output string }
	if err := json.Unmarshal([]byte(result), &out); err != nil ||
		strings.TrimSpace(out.Output) != "scheduled in "+site {
		t.Errorf("schedule:run printed %q, %v", out.Output, err)
	}
}

// niceness is what a command prints of it.
func niceness(t *testing.T, command ...string) string {
	t.Helper()
	said, err := exec.Command(command[0], command[1:]...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(said))
}

func awaitFile(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("there is no %s", path)
		}
	}
}
