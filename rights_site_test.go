package cmsjobs_test

import (
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// The account of docs/install.md does everything, without a right on the server,
// and needs its rights to rows and tables.
func TestTheAccountOfTheInstallation(t *testing.T) {
	jobstest.EachMySQL(t, testTheAccountOfTheInstallation)
}

func testTheAccountOfTheInstallation(t *testing.T, engine jobstest.Engine) {
	r := newRestricted(t, engine)
	if engine == jobstest.MySQL {
		jobstest.PreferMySQLPrograms(t)
	}
	r.t.Setenv("CMSJOBS_BACKUP_DIR", t.TempDir())
	statements := ""
	for _, block := range fence.FindAllStringSubmatch(read(t, "docs/install.md"), -1) {
		if block[1] == "sql" {
			statements += block[2]
		}
	}
	if !strings.Contains(statements, "GRANT "+jobstest.SiteRights+" ON cms.* TO 'site'@'%';") {
		t.Fatalf("the rights of the tests' account are others:\n%s", statements)
	}
	r.do(statements)
	for _, words := range []string{"migrate up", "enqueue cache.clear", "enqueue queue.clean", "enqueue sitemap.generate",
		"work --stop-when-empty", "backup create", "backup verify latest --level restored", "jobs list"} {
		out, err := r.site(words)
		if err != nil || strings.Contains(out, "denied") || strings.Contains(out, "has no right") {
			t.Errorf("%s: %v\n%s", words, err, out)
		}
	}
	if n := r.count("SELECT COUNT(*) FROM cms.cmsjobs_runs WHERE outcome = 'completed'"); n < 2 {
		out, err := r.site("jobs list --status failed")
		t.Errorf("%d jobs were done; %v\n%s", n, err, out)
	}
	if engine != jobstest.MySQL { // the program needs the same of both; once is long enough
		return
	}
	for _, right := range []string{"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP"} {
		t.Run("not one too many: "+right, func(t *testing.T) { r.siteWithout(t, right) })
	}
}

// site runs the program as the account of docs/install.md.
func (r *restricted) site(words string) (string, error) {
	return r.as("site", "change-me", strings.Fields(words)...)
}

// siteWithout shows what does not go without a right.
func (r *restricted) siteWithout(t *testing.T, right string) {
	r.do("REVOKE " + right + " ON cms.* FROM 'site'@'%'")
	defer func() {
		r.do("GRANT " + right + " ON cms.* TO 'site'@'%'")
		if out, err := r.site("migrate up"); err != nil {
			t.Fatalf("with %s again: %v\n%s", right, err, out)
		}
	}()
	var tried strings.Builder
	for _, words := range whatNeeds(right) {
		out, err := r.site(words)
		if err != nil || strings.Contains(out, "denied") || strings.Contains(out, "no right "+right) {
			return
		}
		tried.WriteString("\n# " + words + "\n" + out)
	}
	t.Errorf("nothing needs %s%s", right, tried.String())
}

func whatNeeds(right string) []string {
	switch right {
	case "SELECT":
		return []string{"jobs list"}
	case "INSERT":
		return []string{"enqueue cache.clear"}
	case "UPDATE", "DELETE":
		return []string{"enqueue cache.clear", "work --stop-when-empty --max-time 10s"} // the row stays
	}
	return []string{"migrate down --yes", "migrate up"}
}
