package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// clock stands still until it is moved.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

// site is a CMS for tests: a database with rows, and a folder of files.
type site struct {
	*jobstest.Database
	clock *clock
	files string
	dest  string
	c     Config
}

func newSite(t testing.TB, engine jobstest.Engine) *site {
	t.Helper()
	s := &site{Database: jobstest.Migrated(t, engine), clock: &clock{time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)}, files: t.TempDir(), dest: t.TempDir()}
	for _, statement := range []string{
		"CREATE TABLE posts (id INTEGER PRIMARY KEY, title VARCHAR(100), body TEXT)",
		"CREATE TABLE cache (k VARCHAR(50) PRIMARY KEY, v TEXT)",
		"INSERT INTO cache VALUES ('a', 'b')",
	} {
		s.MustExec(statement)
	}
	for i := range 300 {
		s.MustExec(s.Rebind("INSERT INTO posts VALUES (?, ?, ?)"), i+1, fmt.Sprintf("title; '%d'", i), strings.Repeat("body \\ \" ü😀\n", i))
	}
	s.write(t, "a.txt", "hello")
	s.write(t, "news/ü 1.jpg", strings.Repeat("x", 100_000))
	s.write(t, "big.bin", strings.Repeat("0123456789abcdef", smallFile/16+1000))
	s.write(t, "tmp/left.out", "no")
	s.c = Config{
		Site: &cms.Site{DB: s.DB}, DB: s.DB, DSN: s.DSN, Version: "test",
		Destinations: map[string]storage.Store{"local": local(t, s.dest)},
		Files:        []FileSet{{"storage", local(t, s.files)}},
		Options:      Options{Exclude: []string{"storage/tmp/**"}, MinFree: 1},
		Now:          s.clock.Now, Logger: slog.New(slog.DiscardHandler),
	}
	return s
}

func (s *site) write(t testing.TB, name, content string) {
	t.Helper()
	name = filepath.Join(s.files, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func local(t testing.TB, dir string) *storage.Local {
	t.Helper()
	l, err := storage.NewLocal(dir, storage.LocalOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func (s *site) handler(t testing.TB) *Handler {
	t.Helper()
	h, err := New(s.c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// backup makes a good one, an hour after the last.
func (s *site) backup(t testing.TB, h *Handler) (Report, Stored) {
	t.Helper()
	s.clock.now = s.clock.now.Add(time.Hour)
	report, err := h.Create(t.Context(), Request{Database: true, Files: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if report.Status != Good {
		t.Fatalf("the backup is %+v", report)
	}
	stored, err := h.Show(t.Context(), report.ID, report.Outcomes[0].Destination)
	if err != nil {
		t.Fatal(err)
	}
	return report, stored
}

func TestABackupIsMadeProvenAndRestored(t *testing.T) {
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
				if report.Files != 3 || report.Proof == nil || !report.Proof.OK || report.Proof.Level != LevelRestored {
					t.Fatalf("%+v, proof %+v", report, report.Proof)
				}
				restoreEverything(t, s, h, stored)
			})
		}
	}
}

func restoreEverything(t *testing.T, s *site, h *Handler, b Stored) {
	t.Helper()
	q := RestoreRequest{Backup: b, Database: true, Files: true}
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
	if plan.NewFiles != 1 || plan.ChangedFiles != 1 || plan.SameFiles != 1 || !slices.Equal(plan.Examples, []string{"storage/a.txt", "storage/big.bin"}) {
		t.Errorf("plan %+v", plan)
	}
	q.Confirm = "yes"
	if _, err := h.Restore(t.Context(), q, nil); !errors.Is(err, ErrUnconfirmed) {
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
	if err := db.QueryRow("SELECT COUNT(*), SUM(LENGTH(body)) FROM posts").Scan(&rows, &bytes); err != nil || rows != 300 {
		t.Errorf("%d rows, %v", rows, err)
	}
	if got, err := os.ReadFile(filepath.Join(s.files, "a.txt")); string(got) != "hello" || err != nil {
		t.Errorf("a.txt holds %q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(s.files, "new.txt")); err != nil {
		t.Errorf("a file that the backup does not have is gone: %v", err)
	}
	if done.Safety == nil || done.Safety.Status != Good || done.Files != 3 || len(done.Problems) > 0 {
		t.Errorf("restored: %+v", done)
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
	job := jobs.Job{Kind: "backup.generate", UUID: "u-1", Data: json.RawMessage(`{"type":"backup.generate","includeFiles":true,"includeDatabase":true,"storage":"local"}`)}
	if err := entry.Run(ctx, job); err != nil {
		t.Fatal(err)
	}
	result, _ := run.Outcome()
	var report Report
	if err := json.Unmarshal(result, &report); err != nil || report.Status != Good || report.By != "u-1" {
		t.Errorf("%s, %v", result, err)
	}
	unlock, err := h.lock(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	err = entry.Run(ctx, job)
	if _, later := jobs.AsRetryAfter(err); !later || !errors.Is(err, ErrBusy) {
		t.Errorf("beside another: %v", err)
	}
	s.clock.now = s.clock.now.Add(lockTime + time.Second)
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
	s := newSite(t, jobstest.MySQL)
	h := s.handler(t)
	_, good := s.backup(t, h)
	c, err := mysql.ParseDSN(s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	c.Addr = "127.0.0.1:1"
	s.c.DSN = c.FormatDSN()
	s.c.Options.Retention = Retention{Keep: 1}
	var told []Report
	s.c.Finished = func(_ context.Context, r Report) { told = append(told, r) }
	s.clock.now = s.clock.now.Add(time.Hour)
	broken := s.handler(t)
	report, err := broken.Create(t.Context(), Request{Database: true, Files: true}, nil)
	if !errors.Is(err, ErrPartial) || report.Status != Partial || report.Files != 3 || report.DatabaseError == "" || len(told) != 1 {
		t.Fatalf("%+v, %v, told %d", report, err, len(told))
	}
	latest, err := h.Show(t.Context(), "latest", "")
	if err != nil || latest.ID != good.ID {
		t.Errorf("the newest good one is %s, %v", latest.ID, err)
	}
	if gone, err := broken.Prune(t.Context(), false); len(gone) != 0 || err != nil {
		t.Errorf("pruned %v, %v", gone, err)
	}
	if _, err := h.Restore(t.Context(), RestoreRequest{Backup: Stored{Sidecar: Sidecar{Header: Header{Database: true}, Status: Partial}}, Database: true}, nil); err == nil {
		t.Error("a partial backup is restored")
	}
	s.backup(t, h) // a good one: the partial one goes
	if gone, err := broken.Prune(t.Context(), true); err != nil || len(gone) != 1 || gone[0].ID != good.ID {
		t.Errorf("would prune %v, %v", gone, err)
	}
	if all, err := h.List(t.Context(), ""); len(all) != 2 || err != nil {
		t.Errorf("a dry run left %d, %v", len(all), err)
	}
}

func TestVerifyFindsEveryDamage(t *testing.T) {
	for _, format := range []archive.Format{archive.TarZstd, archive.TarGzip, archive.Zip} {
		t.Run(string(format), func(t *testing.T) {
			s := newSite(t, jobstest.SQLite)
			s.c.Options.Compression = format
			h := s.handler(t)
			_, first := s.backup(t, h)
			_, second := s.backup(t, h)
			name := filepath.Join(s.dest, second.Archive)
			whole, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			other, err := os.ReadFile(filepath.Join(s.dest, first.Archive))
			if err != nil {
				t.Fatal(err)
			}
			damages := map[string][]byte{"empty": nil, "torn": whole[:len(whole)-1], "half": whole[:len(whole)/2], "longer": append(slices.Clone(whole), 0), "swapped": other}
			for i := range 20 {
				flipped := slices.Clone(whole)
				flipped[i*len(whole)/20] ^= 1 << (i % 8)
				damages[fmt.Sprintf("bit flipped in byte %d", i*len(whole)/20)] = flipped
			}
			for damage, content := range damages {
				if err := os.WriteFile(name, content, 0o600); err != nil {
					t.Fatal(err)
				}
				for _, level := range []Level{LevelBytes, LevelParsed, LevelRestored} {
					if proof, err := h.Verify(t.Context(), second, level, nil); !errors.Is(err, ErrUnproven) || proof.OK {
						t.Errorf("%s, %s: %+v, %v", damage, level, proof, err)
					}
				}
			}
			// The sidecar of the other one too: only our own table knows.
			if err := os.WriteFile(name, other, 0o600); err != nil {
				t.Fatal(err)
			}
			forged := second
			forged.SHA256, forged.Size = first.SHA256, first.Size
			if _, err := h.Verify(t.Context(), forged, LevelBytes, nil); !errors.Is(err, ErrUnproven) {
				t.Errorf("archive and sidecar swapped: %v", err)
			}
			if err := os.WriteFile(name, whole, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Verify(t.Context(), second, LevelRestored, nil); err != nil {
				t.Errorf("mended: %v", err)
			}
		})
	}
}

// What an archive holds must be compared too: a hash is right for any bytes
// that were packed.
func TestVerifyComparesTheRestoredRows(t *testing.T) {
	s := newSite(t, jobstest.MySQL)
	h := s.handler(t)
	_, b := s.backup(t, h)
	rewrite(t, s, &b, func(name string, data []byte) []byte {
		if strings.Contains(name, "posts") {
			return bytes.Replace(data, []byte("title; \\'7\\'"), []byte("title; \\'8\\'"), 1)
		}
		return data
	})
	h.c.DB.MustExec("DELETE FROM cmsjobs_backups")
	for level, want := range map[Level]string{LevelParsed: "not as it was packed", LevelRestored: "the rows of the table posts"} {
		_, err := h.Verify(t.Context(), b, level, nil)
		if !errors.Is(err, ErrUnproven) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", level, err)
		}
	}
	var left []string
	if err := s.Select(&left, "SHOW DATABASES LIKE 'cmsjobs\\_verify\\_%'"); err != nil || len(left) > 0 {
		t.Errorf("scratch databases stay: %v, %v", left, err)
	}
}

// rewrite changes a backup's archive and makes the sidecar fit.
func rewrite(t *testing.T, s *site, b *Stored, change func(name string, data []byte) []byte) {
	t.Helper()
	name := filepath.Join(s.dest, b.Archive)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := archive.NewWriter(&out, archive.TarZstd, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = archive.Read(t.Context(), bytes.NewReader(whole), archive.TarZstd, false, nil, func(e archive.Entry, r io.Reader) error {
		data, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		data = change(e.Name, data)
		_, err = w.Add(e.Name, e.Modified, int64(len(data)), bytes.NewReader(data))
		return err
	})
	if err = errors.Join(err, w.Close(), os.WriteFile(name, out.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	b.Size, b.SHA256 = int64(out.Len()), sha(out.Bytes())
}

func TestOneDeadDestinationKillsNoOther(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	dead := &failing{Store: local(t, t.TempDir()), left: 1000, forever: true}
	once := &failing{Store: local(t, t.TempDir()), left: 1000}
	s.c.Destinations["dead"], s.c.Destinations["once"] = dead, once
	h := s.handler(t)
	report, err := h.Create(t.Context(), Request{Database: true, Files: true}, nil)
	if err == nil || !strings.Contains(err.Error(), "destination dead") || report.Status != Good {
		t.Fatalf("%+v, %v", report, err)
	}
	all, err := h.List(t.Context(), "")
	if err != nil || len(all) != 2 || all[0].Destination != "local" || all[1].Destination != "once" {
		t.Fatalf("%d backups, %v", len(all), err)
	}
	for _, o := range report.Outcomes {
		if (o.Error != "") != (o.Destination == "dead") || o.Copied != (o.Destination == "once") {
			t.Errorf("%+v", o)
		}
	}
	for _, b := range all {
		if _, err := h.Verify(t.Context(), b, LevelRestored, nil); err != nil {
			t.Error(err)
		}
	}
}

// failing is a store whose Put fails after some bytes, once or for ever.
type failing struct {
	storage.Store
	left    int64
	forever bool
	failed  bool
}

var errUnplugged = errors.New("unplugged")

func (f *failing) Put(ctx context.Context, key string, r io.Reader, o storage.PutOptions) error {
	if f.failed && !f.forever {
		return f.Store.Put(ctx, key, r, o)
	}
	f.failed = true
	if _, err := io.CopyN(io.Discard, r, f.left); err != nil && err != io.EOF {
		return err
	}
	return errUnplugged
}

func TestNothingCountsWhenEveryDestinationFails(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	dest := s.c.Destinations["local"]
	h := s.handler(t)
	_, good := s.backup(t, h)
	s.c.Destinations["local"] = &failing{Store: dest, left: 1000, forever: true}
	s.clock.now = s.clock.now.Add(time.Hour)
	report, err := s.handler(t).Create(t.Context(), Request{Database: true, Files: true}, nil)
	if !errors.Is(err, errUnplugged) || report.Status != Failed {
		t.Errorf("%+v, %v", report, err)
	}
	if entries, err := os.ReadDir(s.dest); err != nil || len(entries) != 2 {
		t.Errorf("%d files lie there, %v", len(entries), err)
	}
	if _, err := h.Verify(t.Context(), good, LevelRestored, nil); err != nil {
		t.Errorf("the former backup: %v", err)
	}
}

func TestAStandstillEndsTheBackup(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	s.c.Destinations["stuck"] = stuck{local(t, t.TempDir())}
	s.c.Options.StallTimeout = 300 * time.Millisecond
	h := s.handler(t)
	report, err := h.Create(t.Context(), Request{Database: true, Files: true}, nil)
	if err == nil || report.Status != Good || report.Outcomes[0].Error != "" || report.Outcomes[1].Error == "" {
		t.Errorf("%+v, %v", report, err)
	}
	_, err = h.Create(t.Context(), Request{Database: true, Destinations: []string{"stuck"}}, nil)
	if !errors.Is(err, ErrStalled) {
		t.Errorf("%v", err)
	}
}

// stuck is a store that takes nothing and never answers.
type stuck struct{ storage.Store }

func (s stuck) Put(ctx context.Context, _ string, _ io.Reader, _ storage.PutOptions) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestEncryptedForAgeRecipients(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	s.c.Options.Recipients = []age.Recipient{identity.Recipient()}
	report, b := s.backup(t, s.handler(t))
	if !strings.HasSuffix(b.Archive, ".tar.zst.age") || report.Proof.Level != LevelBytes || report.Proof.Note == "" {
		t.Errorf("%s, %+v", b.Archive, report.Proof)
	}
	content, err := os.ReadFile(filepath.Join(s.dest, b.Archive))
	if err != nil || bytes.Contains(content, []byte("hello")) {
		t.Errorf("the archive can be read, %v", err)
	}
	s.c.Options.Identities = []age.Identity{stranger}
	if _, err := s.handler(t).Verify(t.Context(), b, LevelRestored, nil); !errors.Is(err, ErrUnproven) {
		t.Errorf("with a stranger's identity: %v", err)
	}
	s.c.Options.Identities = []age.Identity{identity}
	if proof, err := s.handler(t).Verify(t.Context(), b, LevelRestored, nil); err != nil || proof.Level != LevelRestored {
		t.Errorf("%+v, %v", proof, err)
	}
	if _, err := exec.LookPath("age"); err != nil {
		t.Skip("no age to open it with")
	}
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(identity.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("sh", "-c", `age -d -i "$1" "$2" | zstd -dc | tar -tf -`, "sh", key, filepath.Join(s.dest, b.Archive)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "files/storage/a.txt") || !strings.HasSuffix(string(out), "manifest.json\n") {
		t.Errorf("%v: %s", err, out)
	}
}
