package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// TestAPayloadIsRefusedByEveryWay asks the running service for payloads that its
// handlers refuse for good, and for fields that only administrators may set: by
// a request, by a schedule, and by retrying a row that the CMS wrote.
func TestAPayloadIsRefusedByEveryWay(t *testing.T) {
	t.Parallel()
	dsn, roots, places := newDatabase(t, jobstest.SQLite, tables.Stock), t.TempDir(), t.TempDir()
	s := startService(t, fmt.Sprintf("queue: {poll_first: 20ms, poll: 100ms}\nnotify: {mail: false}\nmail: {from: "+
		"a@example.com, roots: [%q]}\nbackup: {dir: %q}\n", roots, places), dsn)
	admin, operator := bearer(s.token("admin")), bearer(s.token("enqueue,operate"))
	mail := func(path string) string {
		return fmt.Sprintf(`{"to":"b@example.com","subject":"s","body":"b","attachments":[%q]}`, path)
	}
	for _, c := range []struct {
		kind, payload      string
		operator, everyone int // what an operator's request is answered, and an administrator's
	}{
		{"mail.send", mail("../../.env"), 422, 422},
		{"mail.send", mail("/etc/passwd"), 422, 422},
		{"mail.send", mail(roots + "/../x"), 422, 422},
		{"mail.send", mail(filepath.Join(roots, "a.pdf")), 201, 201},
		{"mail.send", mail("a.pdf"), 201, 201},
		{"media.processImage", `{"filePath":"photos/../../.env"}`, 422, 422},
		{"media.processImage", `{"filePath":"a\u0000b"}`, 422, 422},
		{"media.processImage", `{"filePath":"photos\\b.jpg"}`, 422, 422},
		{"media.processImage", `{"mediaFileId":"1 OR 1=1"}`, 422, 422},
		{"media.processImage", `{"filePath":"/storage/photos/a..b.jpg"}`, 201, 201},
		{"backup.generate", `{"storage":"nowhere"}`, 422, 422},
		{"backup.verify", `{"level":"nothing"}`, 422, 422},
		{"backup.verify", `{"storage":"nowhere"}`, 422, 422},
		{"sitemap.indexnow", `{"sitemapUrl":"file:///etc/passwd"}`, 422, 422},
		{"logs.cleanup", `{"days":1}`, 403, 201},
		{"logs.cleanup", `{"days":9000}`, 201, 201},
		{"notification.send", `{"title":"t","immediate":true}`, 403, 201},
		{"notification.send", `{"title":"t","sent_directly":true}`, 403, 201},
		{"notification.send", `{"title":"t"}`, 201, 201},
	} {
		for who, want := range map[string]int{"operator": c.operator, "admin": c.everyone} {
			header := map[string]map[string][]string{"operator": operator, "admin": admin}[who]
			body := fmt.Sprintf(`{"type":%q,"payload":%s}`, c.kind, c.payload)
			if status, answer := s.try("POST", "/api/v1/jobs", body, header); status != want {
				t.Errorf("%s enqueues %s: %d, want %d: %s", who, body, status, want, answer)
			}
		}
	}
	for who, want := range map[string]int{"operator": 403, "admin": 200} {
		header := map[string]map[string][]string{"operator": operator, "admin": admin}[who]
		if status, answer := s.try("PATCH", "/api/v1/schedules/logs.cleanup", `{"payload":{"days":1}}`,
			header); status != want {
			t.Errorf("%s changes the schedule: %d, want %d: %s", who, status, want, answer)
		}
	}
	if status, answer := s.try("POST", "/api/v1/schedules/logs.cleanup/run", "{}", operator); status != 403 {
		t.Errorf("an operator runs the schedule with an administrator's payload: %d %s", status, answer)
	}

	db := openSQLite(t, dsn)
	defer db.Close()
	db.MustExec("INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at) VALUES "+
		"('default', ?, 0, NULL, 0, 0)", `{"type":"mail.send","uuid":"0b1e2d3c-0000-4000-8000-000000000001","data":`+
		mail("../../.env")+`}`)
	ended := s.awaitEnd("0b1e2d3c-0000-4000-8000-000000000001", admin)
	if text, _ := json.Marshal(ended); !strings.Contains(string(text), "mail.roots") {
		t.Errorf("the row's job ended as %s", text)
	}
	for _, way := range []string{"/api/v1/failed/%s/retry", "/api/v1/jobs/%s/requeue", "/api/admin/jobs/%s/retry"} {
		if status, answer := s.try("POST", fmt.Sprintf(way, "0b1e2d3c-0000-4000-8000-000000000001"), "{}",
			admin); status != 409 || !strings.Contains(string(answer), "mail.roots") {
			t.Errorf("%s: %d %s", way, status, answer)
		}
	}
	var bulk struct {
		Count, Changed int
		LeftOut        int `json:"left_out"`
	}
	s.ask(200, "POST", "/api/v1/failed/retry", `{"ids":["0b1e2d3c-0000-4000-8000-000000000001"]}`, admin, &bulk)
	if bulk.Count != 0 || bulk.Changed != 0 || bulk.LeftOut != 1 {
		t.Errorf("the retry of many says %+v", bulk)
	}
}
