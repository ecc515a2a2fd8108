//go:build unix

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/doctor"
)

// Each thing that goes wrong beside a real site is found by its check, and by
// none while it is not there.
func TestDoctorLooksBesideTheSite(t *testing.T) {
	dir, db := sampleSite(t)
	db.MustExec("DELETE FROM jobs")
	db.MustExec("DELETE FROM media_files")
	insert := func(queue, payload string, reserved any) {
		t.Helper()
		if _, err := db.Exec("INSERT INTO jobs (queue, payload, attempts, reserved_at, available_at, created_at) "+
			"VALUES "+
			"(?, ?, 1, ?, 1, 1)", queue, payload, reserved); err != nil {
			t.Fatal(err)
		}
	}
	sitemap, public := filepath.Join(dir, "public", "sitemap.xml"), filepath.Join(dir, "public")
	findings := func(flags ...string) []doctor.Finding {
		t.Helper()
		r := call(t, nil, append([]string{"--cms", dir, "--json", "--set", "http.admin_password=geheim-genug"},
			append(flags, "doctor")...)...)
		return answer[[]doctor.Finding](t, r)
	}
	says := func(all []doctor.Finding, check, text string) bool {
		return slices.ContainsFunc(all, func(f doctor.Finding) bool {
			return f.Check == check && f.Status != doctor.OK && f.Fix != "" && strings.Contains(f.What, text)
		})
	}
	cases := []struct {
		check, text string
		breaks      func()
		flags       []string
	}{
		{"stalled jobs", "1 job has lost its worker", func() { insert("cmsjobs", `{"type":"cache.clear"}`, 1) }, nil},
		{"PHP's workers", `no "job"`, func() { insert("default", `{"type":"cache.clear"}`, nil) }, nil},
		{"PHP's workers", "1 of our jobs and 1 of PHP's", func() {
			insert("mixed", `{"type":"cache.clear","job":"cache.clear"}`, nil)
			insert("mixed",
				`{"displayName":"App\\Jobs\\X","job":"Illuminate\\Queue\\CallQueuedHandler@call","data":{}}`, nil)
		}, nil},
		{"PHP's workers", "failed 1 of our jobs", func() {
			db.MustExec("INSERT INTO failed_jobs (uuid, connection, queue, payload, exception, failed_at) VALUES " +
				"('u1', " +
				"'database', 'cmsjobs', '{\"uuid\":\"u1\",\"type\":\"cache.clear\"}', 'ReflectionException: Class " +
				"\"cache.clear\" " +
				"does not exist', '" + time.Now().UTC().Format(time.DateTime) + "')")
		}, nil},
		{"queue table", "PHP's jobs are in the table queue_jobs", func() {
			env := filepath.Join(dir, ".env")
			text, err := os.ReadFile(env)
			if err == nil {
				err = os.WriteFile(env, append(text, "\nDB_QUEUE_TABLE=queue_jobs\n"...), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, []string{"--set", "database.jobs_table=jobs"}},
		{"sitemap", "this service did not write it", func() {
			if err := os.WriteFile(sitemap, []byte("<urlset/>"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, nil},
		{"pictures", "cannot be read, for example gone.jpg", func() {
			db.MustExec(
				"INSERT INTO media_files (name, mime_type, url, size) VALUES ('x', 'image/jpeg', 'gone.jpg', 1)")
		}, nil},
		{"web server", "lets no other account in", func() {
			if err := os.Chmod(public, 0o700); err != nil {
				t.Fatal(err)
			}
		}, nil},
		{"umask", "cannot read them", func() {
			old := syscall.Umask(0o077)
			t.Cleanup(func() { syscall.Umask(old) })
		}, nil},
	}
	if err := os.RemoveAll(sitemap); err != nil {
		t.Fatal(err)
	}
	before := findings()
	for _, c := range cases {
		if says(before, c.check, c.text) {
			t.Errorf("%s: %q is said before it is true", c.check, c.text)
		}
	}
	var flags []string
	for _, c := range cases { // one after the other, all at once in the end: one start of the program is enough
		c.breaks()
		flags = append(flags, c.flags...)
	}
	after := findings(flags...)
	for _, c := range cases {
		if !says(after, c.check, c.text) {
			t.Errorf("%s: %q is not found among\n%s", c.check, c.text, fmt.Sprint(after))
		}
	}
	nobody := call(t, nil, "--cms", dir, "--json", "--set", "database.jobs_table=jobs", "doctor")
	if !says(answer[[]doctor.Finding](t, nobody), "sign-in", "nobody can sign in") {
		t.Errorf("nobody can sign in, and doctor does not say so:\n%s", nobody.out)
	}
}
