package cache

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func (h *laravelSite) log(name string, size int, age time.Duration) string {
	full := logsFolder + "/" + name
	path := h.write(full, strings.Repeat("x", size))
	if err := os.Chtimes(path, noon.Add(-age), noon.Add(-age)); err != nil {
		h.t.Fatal(err)
	}
	return full
}

const day = 24 * time.Hour

func TestOldLogFilesGoByTheirDate(t *testing.T) {
	h := newLaravelSite(t, jobstest.SQLite, nil)
	gone := []string{
		h.log("laravel-2026-02-01.log", 3, 0), // touched today, old by its name
		h.log("laravel-2026-02-23.log", 3, 15*day),
		h.log("worker.log", 3, 15*day),
		h.log("plugins/shop.log", 3, 20*day),
		h.log("laravel.log.20260101T000000.gz", 3, 60*day),
	}
	kept := []string{
		h.log("laravel-2026-02-24.log", 3, 14*day),
		h.log("laravel-2026-03-10.log", 3, 90*day),
		h.log("laravel.log", 3, 90*day),
		h.log("other.log", 3, 13*day),
		h.log(".gitignore", 3, 90*day),
		h.log("notes.txt", 3, 90*day),
	}
	dry, _ := h.run("logs.cleanup", `{"dryRun":true}`)
	h.check(true, gone...)
	r, _ := h.run("logs.cleanup", ``)
	if r.Files != int64(len(gone)) || dry.Files != r.Files || r.Failures != 0 {
		t.Errorf("removed %d files, the dry-run said %d: %+v", r.Files, dry.Files, r)
	}
	h.check(false, gone...)
	h.check(true, kept...)
	if r, _ := h.run("logs.cleanup", `{"days":1}`); r.Files != 2 { // 02-24 and other.log
		t.Errorf("days=1 removed %d files", r.Files)
	}
}

func TestALargeLogIsPutAsideAndCompressedLater(t *testing.T) {
	h := newLaravelSite(t, jobstest.SQLite, nil)
	h.Options.RotateAbove = 1000
	now := noon
	h.Now = func() time.Time { return now }
	h.log("laravel.log", 5000, 0)

	if r, next := h.run("logs.cleanup", `{"dryRun":true}`); len(r.Rotated) != 1 || len(next) != 0 {
		t.Errorf("dry-run: %+v, then %v", r, next)
	}
	h.check(true, logsFolder+"/laravel.log")
	r, next := h.run("logs.cleanup", ``)
	if len(r.Rotated) != 1 || len(next) != 1 || next[0].Type != "logs.cleanup" || next[0].Delay <= settle {
		t.Fatalf("%+v, then %+v", r, next)
	}
	aside := logsFolder + "/" + r.Rotated[0]
	h.check(false, logsFolder+"/laravel.log")
	h.check(true, aside)
	// A PHP worker that had the file open writes one more line.
	f, err := os.OpenFile(filepath.Join(h.site.Root, aside), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("late"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	h.run("logs.cleanup", ``)
	h.check(true, aside)

	now = now.Add(next[0].Delay)
	if r, _ := h.run("logs.cleanup", ``); len(r.Compressed) != 1 || r.Failures != 0 {
		t.Errorf("%+v", r)
	}
	h.check(false, aside, aside+".gz.part")
	zipped, err := os.Open(filepath.Join(h.site.Root, aside+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer zipped.Close()
	reader, err := gzip.NewReader(zipped)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(reader); err != nil || len(text) != 5004 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if info, err := zipped.Stat(); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode became %v (%v)", info.Mode(), err)
	}
}

// The real CMS's tables, on the database that it has.
func TestOldRowsOfTheRealCMSGo(t *testing.T) { jobstest.EachMySQL(t, testOldRowsOfTheRealCMSGo) }

func testOldRowsOfTheRealCMSGo(t *testing.T, engine jobstest.Engine) {
	h := newLaravelSite(t, engine, nil)
	h.load(jobstest.Fixture(t, "database.sql"))
	at := func(age time.Duration) string { return noon.Add(-age).In(saigon(t)).Format(wallClock) }
	h.sql("REPLACE INTO settings (`key`, value) VALUES ('time_zone', 'Asia/Ho_Chi_Minh'), " +
		"('audit_log_data_retention_period', '7'), ('request_log_data_retention_period', '0')")
	for _, age := range []time.Duration{time.Hour, 7*day - time.Minute, 7*day + time.Minute, 40 * day} {
		h.sql("INSERT INTO audit_histories (user_id, module, action, reference_user, reference_id, reference_name, "+
			"type, created_at) VALUES (1, 'm', 'a', 1, 1, 'r', 'info', ?)", at(age))
		h.sql("INSERT INTO request_logs (status_code, created_at) VALUES (404, ?)", at(age))
		h.sql("INSERT INTO revisions (revisionable_type, revisionable_id, `key`, created_at) VALUES ('P', 1, 'name', ?)", at(11*age))
		h.sql("INSERT INTO sessions (id, payload, last_activity) VALUES (?, 'p', ?)", age.String(),
			noon.Add(-age).Unix())
	}
	dry, _ := h.run("logs.cleanup", `{"dryRun":true}`)
	if dry.Rows["audit_histories"] != 2 || dry.Rows["request_logs"] != 0 || dry.Rows["revisions"] != 1 ||
		dry.Rows["sessions"] != 3 {
		t.Errorf("the dry-run counts %v", dry.Rows)
	}
	r, _ := h.run("logs.cleanup", ``)
	if r.Rows["audit_histories"] != 2 || r.Rows["request_logs"] != 0 || r.Rows["revisions"] != 0 ||
		r.Rows["sessions"] != 0 || r.Failures != 0 {
		t.Errorf("%+v", r)
	}
	if n := h.count("SELECT COUNT(*) FROM audit_histories WHERE created_at >= ?", at(7*day)); n != 2 {
		t.Errorf("%d young rows are left of 2", n)
	}
	h.Options.Sessions, h.Options.RevisionDays = true, 365
	if r, _ := h.run("logs.cleanup", ``); r.Rows["revisions"] != 1 || r.Rows["sessions"] != 3 {
		t.Errorf("switched on: %v", r.Rows)
	}
}

func saigon(t *testing.T) *time.Location {
	zone, err := time.LoadLocation("Asia/Ho_Chi_Minh")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func (h *laravelSite) load(dump string) {
	h.t.Helper()
	client, err := exec.LookPath("mariadb")
	if err != nil {
		h.t.Skip("no mariadb client to load the dump")
	}
	var name string
	if err := h.site.DB.Get(&name, "SELECT DATABASE()"); err != nil {
		h.t.Fatal(err)
	}
	var port string
	if err := h.site.DB.Get(&port, "SELECT @@port"); err != nil {
		h.t.Fatal(err)
	}
	in, err := os.Open(dump)
	if err != nil {
		h.t.Fatal(err)
	}
	defer in.Close()
	load := exec.Command(client, "--no-defaults", "--host=127.0.0.1", "--port="+port, "--user=root",
		"--default-character-set=utf8mb4", name)
	load.Stdin = in
	if out, err := load.CombinedOutput(); err != nil {
		h.t.Fatalf("loading the dump: %v\n%s", err, out)
	}
}

func TestMaintenanceEnqueuesTheCleanings(t *testing.T) {
	h := newLaravelSite(t, jobstest.SQLite, nil)
	cleaned := false
	h.CleanQueue = func(_ context.Context, dryRun bool) (any, error) {
		cleaned = dryRun
		return map[string]int{"workers": 2}, nil
	}
	_, next := h.run("maintenance.cleanup", `{"dryRun":true}`)
	var kinds []string
	for _, n := range next {
		var payload struct{ DryRun bool }
		if err := json.Unmarshal(n.Data, &payload); err != nil || !payload.DryRun {
			t.Errorf("%s does not hand the dry-run on: %s", n.Type, n.Data)
		}
		kinds = append(kinds, n.Type)
	}
	if strings.Join(kinds, " ") != "cache.clearExpired logs.cleanup queue.clean" {
		t.Errorf("enqueued %v", kinds)
	}
	if h.run("queue:clean", `{"dryRun":true}`); !cleaned {
		t.Error("queue:clean did not call the queue's cleaning with its dry-run")
	}
	registry := jobs.NewRegistry()
	New(h.Config).Register(registry)
	if e, _ := registry.Lookup("logs.cleanup"); e.Check(json.RawMessage(`{"days":-1}`)) == nil {
		t.Error("negative days are taken")
	}
}
