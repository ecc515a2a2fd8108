package backup

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/lock"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/retention"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// Anyone who lends a backup memory or a processor is notified when it works.
func TestWorkBeginsAndEnds(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	now, begun := 0, 0
	s.c.Working = func() func() {
		now++
		begun++
		return func() { now-- }
	}
	h := s.handler(t)
	_, b := s.backup(t, h)
	q := restore.Request{Backup: b, Files: true, SkipSafety: true}
	q.Confirm = h.Token(q)
	for name, work := range map[string]func(func(catalog.Step)) error{
		"backup": func(tell func(catalog.Step)) error {
			s.clock.now = s.clock.now.Add(time.Hour)
			_, err := h.Create(t.Context(), Request{Files: true}, tell)
			return err
		},
		"verification": func(tell func(catalog.Step)) error {
			_, err := h.Verify(t.Context(), b, manifest.LevelParsed, tell)
			return err
		},
		"plan":    func(tell func(catalog.Step)) error { _, err := h.Plan(t.Context(), q, tell); return err },
		"restore": func(tell func(catalog.Step)) error { _, err := h.Restore(t.Context(), q, tell); return err },
	} {
		begun = 0
		idle := false
		if err := work(func(catalog.Step) { idle = idle || now == 0 }); err != nil || idle || begun == 0 || now != 0 {
			t.Errorf("%s: %v, idle meanwhile %v, %d begun, %d left", name, err, idle, begun, now)
		}
	}
}

func TestABackupIsMadeVerifiedAndRestored(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		for i, format := range []archive.Format{archive.TarZstd, archive.TarGzip, archive.Zip} {
			if i > 0 && engine != jobstest.SQLite {
				continue // the format does not know where its bytes come from
			}
			t.Run(string(engine)+"/"+string(format), func(t *testing.T) {
				s := newSite(t, engine)
				s.c.Options.Compression = format
				h := s.handler(t)
				report, stored := s.backup(t, h)
				if report.Files != 3 || report.Verification == nil || !report.Verification.OK ||
					report.Verification.Level != manifest.LevelRestored {
					t.Fatalf("%+v, verification %+v", report, report.Verification)
				}
				restoreEverything(t, s, h, stored)
			})
		}
		t.Run(string(engine)+"/repository", func(t *testing.T) {
			s := newSite(t, engine)
			s.c.Options.Form = InRepository
			h := s.handler(t)
			report, stored := s.backup(t, h)
			if report.Files != 3 || report.Verification == nil || !report.Verification.OK ||
				report.Verification.Level != manifest.LevelRestored || stored.Repository == nil || stored.FileCount != 3 {
				t.Fatalf("%+v, verification %+v", report, report.Verification)
			}
			restoreEverything(t, s, h, stored)
		})
	}
}

func restoreEverything(t *testing.T, s *site, h *Handler, b catalog.Stored) {
	t.Helper()
	q := restore.Request{Backup: b, Database: true, Files: true}
	if s.Engine == jobstest.SQLite {
		q.IntoDSN = filepath.Join(t.TempDir(), "restored.sqlite")
	}
	s.MustExec("DELETE FROM posts WHERE id > 100")
	s.write(t, "a.txt", "changed")
	s.write(t, "new.txt", "stays")
	if err := os.Remove(filepath.Join(s.files, "big.bin")); err != nil {
		t.Fatal(err)
	}
	plan, err := h.Plan(t.Context(), q, nil)
	if err != nil {
		t.Fatal(err)
	}
	if plan.NewFiles != 1 || plan.ChangedFiles != 1 || plan.SameFiles != 1 ||
		!slices.Equal(plan.Examples, []string{"storage/a.txt", "storage/big.bin"}) {
		t.Errorf("plan %+v", plan)
	}
	q.Confirm = "yes"
	if _, err := h.Restore(t.Context(), q, nil); !errors.Is(err, restore.ErrUnconfirmed) {
		t.Fatalf("an unconfirmed restore: %v", err)
	}
	q.Confirm = plan.Token
	s.clock.now = s.clock.now.Add(time.Hour)
	done, err := h.Restore(t.Context(), q, nil)
	if err != nil {
		t.Fatal(err)
	}
	db := s.DB
	if q.IntoDSN != "" {
		db = openSQLite(t, q.IntoDSN)
	}
	var rows, bytes int
	if err := db.QueryRow("SELECT COUNT(*), SUM(LENGTH(body)) FROM posts").Scan(&rows, &bytes); err != nil ||
		rows != 300 {
		t.Errorf("%d rows, %v", rows, err)
	}
	if got, err := os.ReadFile(filepath.Join(s.files, "a.txt")); string(got) != "hello" || err != nil {
		t.Errorf("a.txt holds %q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(s.files, "new.txt")); err != nil {
		t.Errorf("a file that the backup does not have is gone: %v", err)
	}
	keepsItsKey(t, s, q, b)
	if done.Safety == nil || done.Safety.Status != manifest.Complete || done.Files != 3 || len(done.Problems) > 0 {
		t.Errorf("restored: %+v", done)
	}
}

// keepsItsKey: after a restore our own backups are still our own.
func keepsItsKey(t *testing.T, s *site, q restore.Request, b catalog.Stored) {
	t.Helper()
	if q.IntoDSN != "" { // as an operator puts the file in the place of the old one
		s.c.DB = openSQLite(t, q.IntoDSN)
	}
	fresh := s.handler(t)
	if again, err := fresh.Show(t.Context(), b.ID, ""); err != nil || again.Origin != manifest.Own {
		t.Errorf("after the restore its origin is %s, %v", again.Origin, err)
	}
}

func TestTheJobReportsAndRunsOneAtATime(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	h := s.handler(t)
	r := jobs.NewRegistry()
	h.Register(r)
	entry, ok := r.Lookup("backup.generate")
	if !ok || entry.Policy.MaxAttempts != 2 || entry.Policy.Backoff(1) != time.Hour || entry.Policy.Limit != 1 {
		t.Fatalf("%+v", entry)
	}
	run := jobs.NewRun(s.clock.Now)
	ctx := jobs.WithRun(t.Context(), run)
	job := jobs.Job{Type: "backup.generate", UUID: "u-1",
		Data: json.RawMessage(
			`{"type":"backup.generate","includeFiles":true,"includeDatabase":true,"storage":"local"}`)}
	if err := entry.Run(ctx, job); err != nil {
		t.Fatal(err)
	}
	result, _ := run.Result()
	var report catalog.Report
	if err := json.Unmarshal(result, &report); err != nil || report.Status != manifest.Complete || report.By != "u-1" {
		t.Errorf("%s, %v", result, err)
	}
	_, unlock, err := h.locks.Exclusive(t.Context(), "the backup other")
	if err != nil {
		t.Fatal(err)
	}
	err = entry.Run(ctx, job)
	if _, later := jobs.AsRetryAfter(err); !later || !errors.Is(err, lock.ErrBusy) {
		t.Errorf("beside another: %v", err)
	}
	if !strings.Contains(err.Error(), "the backup other") {
		t.Errorf("the holder is not named: %v", err)
	}
	expire(s, "%")
	if err := entry.Run(ctx, job); err != nil {
		t.Errorf("after the other was killed: %v", err)
	}
	unlock()
	for _, data := range []string{`{"storage":"nowhere"}`, `{"includeFiles":false,"includeDatabase":false}`} {
		job.Data = json.RawMessage(data)
		if err := entry.Run(ctx, job); !jobs.IsPermanent(err) {
			t.Errorf("%s: %v", data, err)
		}
	}
}

func TestAFailedDumpLeavesAPartialBackup(t *testing.T) {
	jobstest.EachMySQL(t, testAFailedDumpLeavesAPartialBackup)
}

func testAFailedDumpLeavesAPartialBackup(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine)
	h := s.handler(t)
	_, good := s.backup(t, h)
	c, err := mysql.ParseDSN(s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	c.Addr = "127.0.0.1:1"
	s.c.DSN = c.FormatDSN()
	s.c.Options.Retention = retention.Rules{Keep: 1, MinAge: -1}
	var told []catalog.Report
	s.c.Finished = func(_ context.Context, r catalog.Report) { told = append(told, r) }
	s.clock.now = s.clock.now.Add(time.Hour)
	broken := s.handler(t)
	report, err := broken.Create(t.Context(), Request{Database: true, Files: true}, nil)
	if !errors.Is(err, ErrPartial) || report.Status != manifest.Partial || report.Files != 3 ||
		report.DatabaseError == "" || len(told) != 1 {
		t.Fatalf("%+v, %v, told %d", report, err, len(told))
	}
	latest, err := h.Show(t.Context(), "latest", "")
	if err != nil || latest.ID != good.ID {
		t.Errorf("the newest good one is %s, %v", latest.ID, err)
	}
	if gone, err := broken.Prune(t.Context()); len(gone) != 0 || err != nil {
		t.Errorf("pruned %v, %v", gone, err)
	}
	if _, err := h.Restore(t.Context(), restore.Request{
		Backup: catalog.Stored{
			File: manifest.File{Header: manifest.Header{Database: true}, Status: manifest.Partial}},
		Database: true}, nil); err == nil {
		t.Error("a partial backup is restored")
	}
	s.clock.now = s.clock.now.Add(24 * time.Hour)
	h.c.Options.Retention.MinAge = -1
	s.backup(t, h) // a good one: the partial one goes
	if got := staying(t, broken); len(got) != 1 || got[0] == good.ID {
		t.Errorf("%v would stay", got)
	}
	if all, err := h.List(t.Context(), ""); len(all) != 2 || err != nil {
		t.Errorf("a dry run left %d, %v", len(all), err)
	}
}
