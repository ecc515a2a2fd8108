package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"filippo.io/age"

	"github.com/cmsjobs/cmsjobs/internal/app/probe"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// TestThePartsByHandOnMySQL seeds the sample site into a real server and uses
// every part from the command line, as an owner would.
func TestThePartsByHandOnMySQL(t *testing.T) {
	t.Parallel()
	jobstest.EachMySQL(t, testThePartsByHandOnMySQL)
}

func testThePartsByHandOnMySQL(t *testing.T, engine jobstest.Engine) {
	db := jobstest.Open(t, engine)
	var name string
	var port int
	if err := db.QueryRow("SELECT DATABASE(), @@port").Scan(&name, &port); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "site")
	dsn := fmt.Sprintf("mysql://root@127.0.0.1:%d/%s", port, name)
	want(t, call(t, nil, "demo", "--dsn", dsn), exitUsage, "--seed-only")
	want(t, call(t, nil, "demo", "--seed-only", "--dir", dir, "--dsn", dsn), 0, "Making a sample site")
	var posts int
	if err := db.Get(&posts, "SELECT COUNT(*) FROM posts"); err != nil || posts != 300 {
		t.Fatalf("%d posts, %v", posts, err)
	}

	on := func(args ...string) result {
		return call(t, nil,
			append([]string{"--cms", dir, "--set", "backup.free_space=1MiB", "--set",
				"webhook.allow_private=127.0.0.0/8", "--set", "webhook.allow_http=true"}, args...)...)
	}
	want(t, on("backup", "create", "--dry-run"), 0, "To read: about", "Free at local")
	want(t, on("backup", "create", "--tool", "nothing"), 1, "own or mysqldump")
	want(t, on("backup", "create", "--name", "by-hand"), 0, "about", "complete", "restored")
	want(t, on("backup", "list"), 0, "by-hand", "local")
	if _, err := db.Exec("DELETE FROM posts"); err != nil {
		t.Fatal(err)
	}
	plan := on("backup", "restore", "latest", "--database", "--dry-run")
	want(t, plan, 0, "Replaces ", "of the database ", "TABLE", "ROWS IN THE BACKUP", "posts", "To do it: --confirm")
	want(t, on("backup", "prune", "--dry-run"), 0, "Would delete 0 of 1 backup, 0 B. Nothing was deleted.", "stays")
	want(t, on("backup", "restore", "latest", "--database", "--confirm", "wrong"), 1, "not confirmed")
	word := regexp.MustCompile(`--confirm (\S+)`).FindStringSubmatch(plan.out)[1]
	want(t, on("backup", "restore", "latest", "--database", "--confirm", word), 0)
	if err := db.Get(&posts, "SELECT COUNT(*) FROM posts"); err != nil || posts != 300 {
		t.Errorf("%d posts after the restore, %v", posts, err)
	}

	theRestoreJobKeepsItsRow(t, on, db)
	encryptedBackupsAreOpened(t, on)

	want(t, on("webhook", "add", "http://127.0.0.1:1/hook", "--name", "shop"), 0, "whsec_")
	want(t, on("webhook", "disable", "1"), 0)
	want(t, on("webhook", "list"), 0, "shop", "off")
	want(t, on("mail", "suppressions", "add", "jo@example.com"), 0)
	want(t, on("mail", "suppressions", "list"), 0, "jo@example.com")
	want(t, on("mail", "suppressions", "remove", "jo@example.com"), 0)
	want(t, on("mail", "preview", "test"), 0, "Subject:")
	want(t, on("breakers", "reset", "nothing"), 4, "never failed")
	// Rows of jobs are not brought back: work of then is not done twice.
	id := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`).FindString(on("enqueue", probe.Kind.Name, "{}").out)
	want(t, on("jobs", "explain", id), 0, "worker")
	want(t, on("doctor"), 0, "the newest complete backup", "mail server")
}

// theRestoreJobKeepsItsRow restores as the admin page does: by a job, whose own
// row lies in the database that is restored.
func theRestoreJobKeepsItsRow(t *testing.T, on func(...string) result, db *jobstest.Database) {
	t.Helper()
	if _, err := db.Exec("DELETE FROM posts"); err != nil {
		t.Fatal(err)
	}
	plan := on("backup", "restore", "latest", "--database", "--dry-run")
	word := regexp.MustCompile(`--confirm (\S+)`).FindStringSubmatch(plan.out)[1]
	list := answer[[]struct{ ID, Name string }](t, on("backup", "list", "--json"))
	at := slices.IndexFunc(list, func(b struct{ ID, Name string }) bool { return b.Name == "by-hand" })
	made := on("enqueue", "backup.restore", fmt.Sprintf(`{"id":%q,"database":true,"confirm":%q}`, list[at].ID, word))
	want(t, made, 0)
	id := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`).FindString(made.out)
	want(t, on("work", "--stop-when-empty"), 0)
	want(t, on("jobs", "show", id), 0, "completed", "what was there before is in the backup")
	var posts int
	if err := db.Get(&posts, "SELECT COUNT(*) FROM posts"); err != nil || posts != 300 {
		t.Errorf("%d posts after the job, %v", posts, err)
	}
	made = on("enqueue", "backup.monitor", `{"digest":true}`)
	want(t, on("work", "--stop-when-empty"), 0)
	want(t, on("jobs", "show", regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`).FindString(made.out)), 0, "completed",
		"digest")
	want(t, on("jobs", "list", "--type", "notification.send"), 0, "notification.send")
}

// encryptedBackupsAreOpened needs the key to restore, not to make them.
func encryptedBackupsAreOpened(t *testing.T, on func(...string) result) {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key.txt")
	if err := os.WriteFile(key, []byte("# a comment\n"+identity.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sealed := []string{"--set", "backup.age_recipients=" + identity.Recipient().String()}
	want(t, on(append(sealed, "backup", "create", "--name", "sealed")...), 0, "bytes")
	want(t, on("backup", "restore", "latest", "--database", "--dry-run"), 0)
	want(t, on("backup", "verify", "latest", "--level", "restored"), 0, "no age identity")
	want(t, on("--set", "backup.age_identities="+key, "backup", "verify", "latest", "--level", "restored"), 0,
		"restored")
	want(t, on("--set", "backup.age_identities="+key+".none", "backup", "list"), exitUsage, "age_identities")
}
