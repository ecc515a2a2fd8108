package cli

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// phpHash is a password as PHP's password_hash stores it.
func phpHash(t *testing.T, password string) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return "$2y$" + string(hash[4:])
}

// signIn returns the status, what the session may do and its cookie.
func (s *service) signIn(name, password string) (status int, scopes []string, cookie http.Header) {
	s.t.Helper()
	body, err := json.Marshal(map[string]string{"name": name, "password": password})
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := http.Post(s.url+"/api/v1/session", "application/json", strings.NewReader(string(body)))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	var view struct{ Scopes []string }
	if err := json.NewDecoder(answer.Body).Decode(&view); err != nil {
		s.t.Fatal(err)
	}
	for _, c := range answer.Cookies() {
		cookie = http.Header{"Cookie": {c.Name + "=" + c.Value}}
	}
	return answer.StatusCode, view.Scopes, cookie
}

// TestTheCMSsAdministratorsSignIn uses the tables of a real CMS: its super
// user, an editor whose role has the configured permission, one without, and
// one who was never activated.
func TestTheCMSsAdministratorsSignIn(t *testing.T) {
	t.Parallel()
	jobstest.EachMySQL(t, testTheCMSsAdministratorsSignIn)
}

func testTheCMSsAdministratorsSignIn(t *testing.T, engine jobstest.Engine) {
	db := jobstest.Open(t, engine)
	loadDump(t, db, "database.sql")
	hash := phpHash(t, "geheim")
	for _, statement := range []string{
		"UPDATE users SET password = ? WHERE super_user = 1",
		"INSERT INTO users (id, email, username, password) VALUES (2, 'ed@cms.example', 'ed', ?)",
		"INSERT INTO users (id, email, username, password) VALUES (3, 'jo@cms.example', 'jo', ?)",
		"INSERT INTO users (id, email, username, password, super_user) VALUES (4, 'new@cms.example', 'new', ?, 1)",
	} {
		if _, err := db.Exec(statement, hash); err != nil {
			t.Fatal(err)
		}
	}
	for _, statement := range []string{
		"INSERT INTO activations (user_id, code, completed) VALUES (2, 'x', 1), (3, 'y', 1), (4, 'z', 0)",
		`INSERT INTO roles (id, slug, name, permissions, created_by, updated_by) VALUES (70, 'ops', 'Ops',
			'{"cmsjobs.operate":true}', 1, 1)`,
		"INSERT INTO role_users (user_id, role_id) VALUES (2, 70)",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	s := startService(t, "http: {permissions: {cmsjobs.operate: operator}}\nschedule: {enabled: false}\n",
		"--dsn="+db.DSN)

	status, scopes, root := s.signIn("admin", "geheim")
	if status != http.StatusCreated || strings.Join(scopes, " ") != "admin" {
		t.Fatalf("the super user: %d %v\n%s", status, scopes, s.log())
	}
	s.ask(200, "GET", "/api/v1/tokens", "", root, nil)
	status, scopes, editor := s.signIn("ed@cms.example", "geheim") // by e-mail, too
	if status != http.StatusCreated || strings.Join(scopes, " ") != "read enqueue operate" {
		t.Errorf("the editor: %d %v", status, scopes)
	}
	s.ask(200, "GET", "/api/v1/jobs", "", editor, nil)
	s.ask(403, "GET", "/api/v1/tokens", "", editor, nil)
	for _, refused := range [][2]string{{"jo", "geheim"}, {"new", "geheim"}, {"admin", "wrong"}, {"nobody", "geheim"}} {
		if status, _, _ := s.signIn(refused[0], refused[1]); status != http.StatusUnauthorized {
			t.Errorf("%s/%s: %d, want 401", refused[0], refused[1], status)
		}
	}

	// The permission is taken away, the CMS signs the super user out everywhere.
	for _, statement := range []string{"DELETE FROM role_users WHERE user_id = 2",
		"ALTER TABLE users ADD sessions_invalidated_at TIMESTAMP NULL",
		"UPDATE users SET sessions_invalidated_at = '2037-01-01 00:00:00' WHERE id = 1"} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	s.ask(401, "GET", "/api/v1/jobs", "", editor, nil)
	s.ask(401, "GET", "/api/v1/jobs", "", root, nil)
}
