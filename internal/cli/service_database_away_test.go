package cli

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// While the database server is gone, each route says 503, when to try again and
// what to do, and no sign-in counts as a wrong password.
func TestTheAnswersWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	server, _ := siteOnOwnServer(t)
	s := startService(t, "http: {admin_password: right-password}\nqueue: {worker: false}\nschedule: {enabled: false}\n",
		"--dsn="+server.MySQLDSN("cms"))
	token := bearer(s.token("admin"))
	const job = `{"type":"queue.clean"}`
	s.ask(201, "POST", "/api/v1/jobs", job, token, nil)
	if err := server.Kill(); err != nil {
		t.Logf("%v", err) // of a killed server
	}

	signIn := `{"name":"admin","password":"right-password"}`
	keyed := token.Clone()
	keyed.Set("Idempotency-Key", "one")
	for _, c := range []struct {
		method, path, body string
		header             http.Header
	}{
		{"POST", "/api/v1/jobs", job, token}, {"POST", "/api/v1/jobs", job, keyed},
		{"POST", "/api/v1/jobs/batch", `{"jobs":[` + job + `]}`, token},
		{"POST", "/api/jobs/enqueue", `{"type":"queue.clean"}`, token}, {"POST", "/api/v1/session", signIn, nil},
		{"GET", "/api/v1/jobs", "", token}, {"GET", "/api/v1/schedules", "", token}, {"GET", "/admin", "", token},
		{"GET", "/admin/jobs", "", token},
	} {
		s.awayAnswer(c.method, c.path, c.body, c.header)
	}
	for range 15 { // more than an address may be wrong
		s.awayAnswer("POST", "/api/v1/session", signIn, nil)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "an answer", func() bool {
		status, _ := s.try("POST", "/api/v1/jobs", job, token)
		return status == 201
	})
	if status, _, _ := s.signIn("admin", "wrong"); status != http.StatusUnauthorized {
		t.Errorf("a wrong password afterwards: %d, want 401", status)
	}
	if status, _, _ := s.signIn("admin", "right-password"); status != http.StatusCreated {
		t.Errorf("the right password afterwards: %d, want 201", status)
	}
}

// awayAnswer asks for an answer that says that the database is unavailable.
func (s *service) awayAnswer(method, path, body string, header http.Header) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for name, values := range header {
		r.Header[name] = values
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	wait, err := strconv.Atoi(answer.Header.Get("Retry-After"))
	if answer.StatusCode != http.StatusServiceUnavailable || err != nil || wait < 1 ||
		!strings.Contains(string(text), "The database is unavailable") {
		s.t.Errorf("%s %s: %d, Retry-After %q: %s", method, path, answer.StatusCode, answer.Header.Get("Retry-After"),
			text[:min(len(text), 600)])
	}
}
