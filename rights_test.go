package cmsjobs_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// The grants of docs/operating.md are enough to work, and for the account that
// works they allow no table to be made.
func TestLeastRights(t *testing.T) {
	server := jobstest.OwnMariaDB(t)
	db := server.RootMariaDB(t)
	do := func(statements string) {
		t.Helper()
		if _, err := db.Exec(statements); err != nil {
			t.Fatalf("%v in %.300s", err, statements)
		}
	}
	do("CREATE DATABASE cms")
	dir := t.TempDir() + "/site"
	cmsjobs := func(user, password string, words ...string) (string, error) {
		c := exec.Command(program(t), words...)
		c.Env = append(os.Environ(), fmt.Sprintf("CMSJOBS_DATABASE_DSN=mysql://%s:%s@127.0.0.1:%d/cms", user, password, server.Port),
			"CMSJOBS_DATABASE_MIGRATE=false", "CMSJOBS_CMS_DIR="+dir, "CMSJOBS_MAIL_DRIVER=log", "CMSJOBS_CACHE_DRIVER=database")
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := exec.Command(program(t), "demo", "--once", "--dir", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	do("USE cms;\n" + read(t, "deploy/compose/cms.sql"))

	var blocks []string
	for _, block := range fence.FindAllStringSubmatch(read(t, "docs/operating.md"), -1) {
		if block[1] == "sql" {
			blocks = append(blocks, block[2])
		}
	}
	do(blocks[0])
	if out, err := cmsjobs("cmsjobs_owner", "change-me", "migrate", "up"); err != nil {
		t.Fatalf("migrate up: %v\n%s", err, out)
	}
	rows, err := db.Query(blocks[1])
	if err != nil {
		t.Fatal(err)
	}
	var grants []string
	for rows.Next() {
		var grant string
		if err := rows.Scan(&grant); err != nil {
			t.Fatal(err)
		}
		grants = append(grants, grant)
	}
	if err := rows.Err(); err != nil || len(grants) < 10 {
		t.Fatalf("%d grants: %v", len(grants), err)
	}
	do(strings.Join(grants, "\n"))

	expired := "INSERT INTO cms.cache (`key`, value, expiration) VALUES ('old', 'x', 1); INSERT INTO cms.audit_histories (user_id, module, action, reference_id, reference_name, type, created_at) VALUES (1, 'm', 'a', 1, 'n', 'info', '2020-01-01')"
	do(expired)
	enqueue := func(kind string) {
		t.Helper()
		payload := map[string]string{"mail.send": `{"to":"zoe@example.com","subject":"Hello","body":"Hi"}`, "media.processImage": `{"mediaFileId":1,"force":true}`,
			"notification.send": fmt.Sprintf(`{"title":"Hello","message":"Hi","topic":"%d"}`, time.Now().UnixNano())}[kind]
		if out, err := cmsjobs("cmsjobs", "change-me-too", "enqueue", kind, cmp.Or(payload, "{}"), "--max-attempts", "1"); err != nil {
			t.Errorf("enqueue %s: %v\n%s", kind, err, out)
		}
	}
	for _, kind := range []string{"sitemap.generate", "cache.clearExpired", "logs.cleanup", "queue.clean", "analytics.process", "mail.send", "media.processImage", "notification.send"} {
		enqueue(kind)
	}
	out, err := cmsjobs("cmsjobs", "change-me-too", "work", "--stop-when-empty")
	if err != nil || strings.Contains(out, "denied") {
		t.Errorf("work: %v\n%s", err, out)
	}
	var left, dead, done int
	for query, n := range map[string]*int{"SELECT COUNT(*) FROM cms.jobs": &left, "SELECT COUNT(*) FROM cms.failed_jobs": &dead,
		"SELECT COUNT(*) FROM cms.cmsjobs_runs WHERE outcome = 'completed'": &done} {
		if err := db.QueryRow(query).Scan(n); err != nil {
			t.Fatal(err)
		}
	}
	if dead > 0 || done < 8 {
		t.Errorf("%d jobs left, %d failed, %d done\n%s", left, dead, done, out)
	}
	if out, err := cmsjobs("cmsjobs", "change-me-too", "migrate", "down", "--yes"); err == nil {
		t.Errorf("the account that works could remove tables:\n%s", out)
	}

	// Not one right too many: without it, its job says what was denied.
	for _, c := range []struct{ right, table, kind string }{
		{"UPDATE (options, updated_at)", "media_files", "media.processImage"},
		{"DELETE", "audit_histories", "logs.cleanup"},
		{"DELETE", "cache", "cache.clearExpired"},
		{"INSERT, DELETE", "admin_notifications", "notification.send"},
		{"INSERT, UPDATE, DELETE", "jobs", "mail.send"},
	} {
		// Options as they are would not be written again.
		do(fmt.Sprintf("DELETE FROM cms.cache; DELETE FROM cms.failed_jobs; UPDATE cms.media_files SET options = '[]'; %s; REVOKE %s ON cms.%s FROM 'cmsjobs'@'%%'", expired, c.right, c.table))
		out, err := cmsjobs("cmsjobs", "change-me-too", "enqueue", c.kind, `{"mediaFileId":1,"force":true,"title":"t","topic":"x","to":"zoe@example.com","subject":"s","body":"b"}`, "--max-attempts", "1")
		if err == nil {
			worked, _ := cmsjobs("cmsjobs", "change-me-too", "work", "--stop-when-empty") // its exit code is not the question
			out += worked
		}
		var refused int
		if err := db.QueryRow("SELECT COUNT(*) FROM cms.failed_jobs WHERE exception LIKE '%denied%'").Scan(&refused); err != nil {
			t.Fatal(err)
		}
		if refused == 0 && !strings.Contains(out, "denied") {
			t.Errorf("%s works without %s on %s: the manual grants too much, or this test too little\n%s", c.kind, c.right, c.table, out)
		}
		do(fmt.Sprintf("GRANT %s ON cms.%s TO 'cmsjobs'@'%%'", c.right, c.table))
	}
}
