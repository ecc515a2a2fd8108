package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/encryption"
	mailpage "github.com/cmsjobs/cmsjobs/internal/web/feature/mail"
)

// A reset link is in the mail and nowhere else: not in the row, the API or the failed job,
// which a wrong key leaves complete.
func TestAResetLinkStandsInItsMailOnly(t *testing.T) {
	t.Parallel()
	const key, link = "CMSJOBS_QUEUE_ENCRYPTION_KEY=0123456789abcdef0123456789abcdef", "the-link-of-zoe"
	o := newOffice(t, key, "CMSJOBS_MAIL_KEEP_BODY=true")
	db, err := database.Connect(t.Context(), database.ConnectOptions{DSN: strings.TrimPrefix(o.dsn, "--dsn=")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	stored := func(statement string) string {
		t.Helper()
		var payload string
		if err := db.Get(&payload, statement); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(payload, link) || !strings.Contains(payload, encryption.Prefix) {
			t.Errorf("%s: %s", statement, payload)
		}
		return payload
	}
	want(t, o.call("enqueue", "mail.send", "--max-attempts", "1", `{"to":"zoe@example.net","subject":"s","body":"`+link+`"}`), 0)
	row := stored("SELECT payload FROM jobs")
	for _, path := range []string{"/api/v1/jobs", "/admin/jobs", "/api/v1/jobs/export?format=csv"} {
		if status, text := o.ask("GET", path, nil, nil); strings.Contains(text, link) ||
			strings.Contains(text, encryption.Prefix) || status != http.StatusOK {
			t.Errorf("GET %s: %d %s", path, status, text)
		}
	}
	o.env = append(o.env, strings.ReplaceAll(key, "0", "x"))
	want(t, o.call("work", "--stop-when-empty"), 0)
	want(t, o.call("--json", "failed", "list"), 0, "encrypted with another key")
	stored("SELECT payload FROM failed_jobs")
	o.env = o.env[:len(o.env)-1]
	want(t, o.call("failed", "retry", "--type", "mail.send", "--yes"), 0)
	want(t, o.call("work", "--stop-when-empty"), 0)
	files, err := filepath.Glob(filepath.Join(o.dir, "*.eml"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d mails, %v", len(files), err)
	}
	if mail, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(mail), link) {
		t.Errorf("the mail: %s, %v", mail, err)
	}
	stored("SELECT payload FROM cmsjobs_mail_payloads")
	var sent mailPage
	if o.get("/api/v1/mail", &sent); len(sent.Items) == 0 {
		t.Fatal("no mail is listed")
	}
	var one mailpage.Mail
	if o.get("/api/v1/mail/"+sent.Items[0].ID, &one); !strings.Contains(one.PlainText, link) {
		t.Errorf("the kept mail: %+v", one)
	}
	var envelope struct{ Data map[string]json.RawMessage }
	if err := json.Unmarshal([]byte(row), &envelope); err != nil {
		t.Fatal(err)
	}
	stolen := `{"type":"mail.send","payload":{"to":"eve@example.net","subject":"s","body":` +
		string(envelope.Data["body"]) + `}}`
	header := http.Header{"Content-Type": {"application/json"}}
	r := &http.Request{Header: http.Header{}}
	r.SetBasicAuth("admin", "right horse battery")
	header.Set("Authorization", r.Header.Get("Authorization"))
	if status, text := o.ask("POST", "/api/v1/jobs", header, []byte(stolen)); status != http.StatusUnprocessableEntity ||
		!strings.Contains(text, "encrypted already") {
		t.Errorf("a value of another job is mailed to Eve: %d %s", status, text)
	}
}
