package backup

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/retention"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// Anyone who can enqueue makes one backup an hour, and erases none.
func TestAnEnqueuerErasesNoBackup(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	s.c.Options.Retention = retention.Rules{Keep: 2, MinAge: -1}
	s.c.Scheduled = func(_ context.Context, uuid string) (bool, error) { return strings.HasPrefix(uuid, "tick"), nil }
	h := s.handler(t)
	r := jobs.NewRegistry()
	h.Register(r)
	entry, _ := r.Lookup(Generate.Name)
	run := func(uuid string) error {
		s.clock.now = s.clock.now.Add(20 * time.Minute)
		return entry.Run(jobs.WithRun(t.Context(), jobs.NewRun(s.clock.Now)), jobs.Job{Type: Generate.Name, UUID: uuid,
			Data: json.RawMessage(`{}`)})
	}
	s.clock.now = s.clock.now.Truncate(24 * time.Hour)
	if err := run("tick-1"); err != nil {
		t.Fatal(err)
	}
	first, err := h.Show(t.Context(), "latest", "")
	if err != nil {
		t.Fatal(err)
	}
	s.clock.now = s.clock.now.Add(24 * time.Hour)
	made, refused := 0, 0
	for range 30 { // ten hours
		switch err := run("attack"); {
		case err == nil:
			made++
		case errors.Is(err, ErrTooSoon) && jobs.IsPermanent(err) &&
			strings.Contains(err.Error(), "cmsjobs backup create"):
			refused++
		default:
			t.Fatal(err)
		}
	}
	for range 9 { // with the name of a job of the schedule
		if run("tick-1") == nil {
			made++
		}
	}
	if made == 0 || made > 16 || refused == 0 {
		t.Errorf("%d made, %d refused", made, refused)
	}
	if err := run("tick-2"); err != nil {
		t.Errorf("a scheduled one: %v", err)
	}
	if _, err := h.Create(t.Context(), Request{Files: true, Source: SourceCommand}, nil); err != nil {
		t.Errorf("from the command line: %v", err)
	}
	if _, err := h.Show(t.Context(), first.ID, ""); err != nil {
		t.Errorf("the backup from before the attack: %v", err)
	}
	all, err := h.List(t.Context(), "")
	if err != nil || len(all) > 3 {
		t.Errorf("%d stay, %v", len(all), err)
	}
}

// A second attempt of the same job is no other backup.
func TestARetryIsNotTooSoon(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	h := s.handler(t)
	for range 2 {
		q := Request{By: "one job"}
		if err := h.source(t.Context(), &q); err != nil || q.Source != SourceJob {
			t.Fatalf("%+v, %v", q, err)
		}
		q.Files = true
		if _, err := s.daily(t, h, q); err != nil {
			t.Fatal(err)
		}
		s.clock.now = s.clock.now.Add(time.Minute)
	}
	if err := h.source(t.Context(), &Request{By: "another"}); !errors.Is(err, ErrTooSoon) {
		t.Error(err)
	}
}

// A backup that a host with a fast clock made keeps none of the others waiting.
func TestABackupFromTheFutureIsNotTooSoon(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	h := s.handler(t)
	s.clock.now = s.clock.now.Add(48 * time.Hour)
	if _, err := s.daily(t, h, Request{Files: true, By: "a fast clock", Source: SourceJob}); err != nil {
		t.Fatal(err)
	}
	s.clock.now = s.clock.now.Add(-47 * time.Hour)
	if err := h.source(t.Context(), &Request{By: "another"}); err != nil {
		t.Error(err)
	}
}

// Without a minimum nothing is too soon, also behind a backup of a host whose
// clock is fast.
func TestWithoutAMinimumNothingIsTooSoon(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	s.c.Options.MinInterval = -1 // none
	h := s.handler(t)
	s.clock.now = s.clock.now.Add(90 * time.Minute)
	if _, err := s.daily(t, h, Request{Files: true, By: "the fast host", Source: SourceJob}); err != nil {
		t.Fatal(err)
	}
	s.clock.now = s.clock.now.Add(-90 * time.Minute)
	if err := h.source(t.Context(), &Request{By: "another"}); err != nil {
		t.Error(err)
	}
}

// One that failed and left no archive takes no time from the next.
func TestAFailureIsNotTooSoon(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	store := &failing{Store: s.c.Destinations["local"], left: 1000, forever: true}
	s.c.Destinations["local"] = store
	h := s.handler(t)
	if _, err := s.daily(t, h, Request{Files: true, By: "one", Source: SourceJob}); err == nil {
		t.Fatal("a disk without space took it")
	}
	if err := h.source(t.Context(), &Request{By: "another"}); err != nil {
		t.Error(err)
	}
}

// What does not fit is refused; nothing goes to make space.
func TestABackupThatDoesNotFitIsRefused(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	h := s.handler(t)
	_, b := s.backup(t, h)
	h.c.Options.MaxBytes = b.Size + 100
	s.clock.now = s.clock.now.AddDate(0, 1, 0)
	report, err := h.Create(t.Context(), everything, nil)
	if err == nil || !strings.Contains(err.Error(), "backup.max_total") || report.Status != manifest.Failed {
		t.Errorf("%s, %v", report.Status, err)
	}
	if latest, err := h.Show(t.Context(), "latest", ""); err != nil || latest.ID != b.ID {
		t.Errorf("%s, %v", latest.ID, err)
	}
	h.c.Options.MaxBytes = 1 << 40
	s.backup(t, h)
}

// secretWord is planted into each table of SecretTables.
const secretWord = "s3cr3t-w0rd-of-"

func plant(s *site) (tables []string) {
	s.MustExec("CREATE TABLE password_resets (email VARCHAR(100), token VARCHAR(100))")
	s.MustExec("CREATE TABLE password_reset_tokens (email VARCHAR(100), token VARCHAR(100))")
	for table, row := range map[string]string{
		"password_resets":       "(email, token) VALUES ('a@b', ?)",
		"password_reset_tokens": "(email, token) VALUES ('a@b', ?)",
		"cmsjobs_mail_payloads": "(job_uuid, payload, created_at) VALUES ('u', ?, 1)",
		"cmsjobs_sessions": "(hash, account, source, role, address, agent, created_at, seen_at) VALUES (?, " +
			"'a', 'a', 'a', 'a', 'a', 1, 1)",
		"cmsjobs_backup_keys":     "(name, private_key, made_at) VALUES ('other', ?, 1)",
		"cmsjobs_analytics_salts": "(day, salt, expires) VALUES ('2026-01-01', ?, 1)",
		"cmsjobs_webhooks": "(name, url, events, secret, old_secret, old_secret_until, status, reason, " +
			"created_at, updated_at) VALUES ('n', 'u', 'e', ?, '', 0, 's', '', 1, 1)",
		"cmsjobs_logins":      "(subject, failures, since) VALUES (?, 1, 1)",
		"cmsjobs_idempotency": "(id, body, uuid, created_at) VALUES ('i', ?, 'u', 1)",
	} {
		tables = append(tables, table)
		s.MustExec(s.Rebind("INSERT INTO "+table+" "+row), []byte(secretWord+table[len(table)-5:]))
	}
	return tables
}

// reveals finds a planted word in a dump, as text or as hexadecimal digits.
func reveals(sql string) string {
	for _, word := range []string{secretWord, hex.EncodeToString([]byte(secretWord)),
		strings.ToUpper(hex.EncodeToString([]byte(secretWord)))} {
		if i := strings.Index(sql, word); i >= 0 {
			return sql[i:min(len(sql), i+60)]
		}
	}
	return ""
}

// dumped is all SQL of a backup.
func dumped(t *testing.T, h *Handler, b catalog.Stored) string {
	t.Helper()
	var sql bytes.Buffer
	err := h.Read(t.Context(), b, nil, func(e archive.Entry, r io.Reader) error {
		if strings.HasPrefix(e.Name, manifest.DatabaseFolder) || strings.HasPrefix(e.Name, manifest.RoutinesFolder) {
			_, err := io.Copy(&sql, r)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sql.String()
}

func TestSecretsAreNotDumpedUnlessAskedFor(t *testing.T) {
	for _, engine := range jobstest.Engines() {
		t.Run(string(engine), func(t *testing.T) {
			s := newSite(t, engine)
			tables := plant(s)
			tools := []string{"own"}
			if engine.IsMySQL() {
				tools = append(tools, "mysqldump")
			}
			if engine == jobstest.MySQL {
				jobstest.PreferMySQLPrograms(t)
			}
			for _, tool := range tools {
				h := s.handler(t)
				h.c.Options.Tool = tool
				_, b := s.backup(t, h)
				sql := dumped(t, h, b)
				if found := reveals(sql); found != "" {
					t.Errorf("%s: the dump has %q", tool, found)
				}
				for _, table := range tables {
					if !strings.Contains(sql, table) {
						t.Errorf("%s: the dump lacks the table %s", tool, table)
					}
				}
				if !strings.Contains(sql, "title; ") {
					t.Errorf("%s: the dump has no posts", tool)
				}
			}
			h := s.handler(t)
			h.c.Options.WithSecrets = true
			_, b := s.backup(t, h)
			sql := dumped(t, h, b)
			if !strings.Contains(sql, secretWord+"esets") || !strings.Contains(sql, secretWord+"hooks") {
				t.Error("asked for, the secrets are not there")
			}
			if strings.Contains(sql, secretWord+"_keys") {
				t.Error("the signing key is in the dump")
			}
		})
	}
}
