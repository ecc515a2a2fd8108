package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
)

// TestWhatAUserAsksWronglyIsNoFault sends what users get wrong, and what
// nobody may have: each is refused with a reason, and none is a fault of the
// service in its log.
func TestWhatAUserAsksWronglyIsNoFault(t *testing.T) {
	t.Parallel()
	s := startService(t, "schedule: {enabled: false}\nhttp: {admin_password: something-long}\n",
		newDatabase(t, jobstest.SQLite, tables.Stock))
	admin, enqueuer := bearer(s.token("admin")), bearer(s.token("enqueue"))
	for _, c := range []struct {
		who    map[string][]string
		status int
		method string
		path   string
		body   string
	}{
		{admin, 400, "GET", "/api/v1/analytics", ""},
		{admin, 400, "GET", "/api/v1/analytics?since=2026-11-01", ""},
		{admin, 422, "GET", "/api/v1/analytics?since=2026-11-02&until=2026-11-01", ""},
		{admin, 422, "GET", "/api/v1/analytics?since=1026-11-02&until=2026-11-01", ""},
		{admin, 422, "DELETE", "/api/v1/suppressions/bad", ""},
		{admin, 422, "POST", "/api/v1/suppressions", `{"address":"not one"}`},
		{admin, 422, "POST", "/api/v1/webhooks", `{"url":"http://example.com/hook"}`},
		{admin, 422, "POST", "/api/v1/webhooks", `{"url":"https://example.com/hook","events":["a b"]}`},
		{admin, 404, "POST", "/api/v1/deliveries/77/redeliver", "{}"},
		{nil, 401, "POST", "/api/v1/session", `{"name":"nobody","password":"x"}`},

		{enqueuer, 403, "POST", "/api/v1/jobs",
			`{"type":"jobs.bulk","payload":{"action":"cancel","filter":{},"count":9,"at":"2026-11-01T00:00:00Z","by":"x"}}`},
		{enqueuer, 403, "POST", "/api/v1/jobs",
			`{"type":"webhook.deliver","payload":{"subscription":1,"event":"order.paid"}}`},
		{enqueuer, 403, "POST", "/api/v1/jobs", `{"type":"cmsjobs.probe"}`},
		{admin, 403, "POST", "/api/v1/jobs", `{"type":"jobs.bulk","payload":{"action":"cancel"}}`},
		{admin, 403, "POST", "/api/v1/jobs/batch",
			`{"jobs":[{"type":"webhook.deliver","payload":{"order":"00000000000000000000000000000000"}}]}`},
		{admin, 422, "POST", "/api/v1/jobs", `{"type":"cmsjobs.probe","payload":{"sleep":"30m"}}`},
		{enqueuer, 201, "POST", "/api/v1/jobs", `{"type":"cache.clear"}`},
	} {
		if status, body := s.try(c.method, c.path, c.body, c.who); status != c.status {
			t.Errorf("%s %s %s: %d, want %d: %s", c.method, c.path, c.body, status, c.status, body)
		}
	}
	if log := s.log(); strings.Contains(log, `"level":"ERROR"`) {
		t.Errorf("faults in the log:\n%s", log)
	}
}

// TestRowsCannotBeInternalJobs inserts rows as anyone who may write to the table
// can.
func TestRowsCannotBeInternalJobs(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, jobstest.SQLite, tables.Stock)
	s := startService(t, "schedule: {enabled: false}\nqueue: {poll_first: 20ms, poll: 100ms}\n", dsn)
	admin := bearer(s.token("admin"))
	db := openSQLite(t, dsn)
	defer db.Close()
	kept := map[string]string{}
	for i, row := range []string{
		`"type":"jobs.bulk","action":"delete","filter":{},"count":100,"at":"2026-11-01T00:00:00Z","by":"x"`,
		`"type":"webhook.deliver","url":"https://example.com/","event":"order.paid"`,
		`"type":"cmsjobs.probe","sleep":"1s"`} {
		id := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
		kept[id] = row
		db.MustExec("INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at) VALUES "+
			"('default', ?, 0, NULL, unixepoch(), unixepoch())", `{"uuid":"`+id+`",`+row+`}`)
	}
	for id, row := range kept {
		job := s.awaitEnd(id, admin)
		if job.Status != "failed" || !strings.Contains(job.Error, "made by the service itself") {
			t.Errorf("the row %s ended as %+v", row, job)
		}
	}
}
