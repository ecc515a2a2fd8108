package cms_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

func TestProbeTellsRealVersionsApart(t *testing.T) {
	jobstest.EachMySQL(t, testProbeTellsRealVersionsApart)
}

func testProbeTellsRealVersionsApart(t *testing.T, engine jobstest.Engine) {
	for dump, want := range map[string]struct {
		era            string
		cache, actors  bool
		content, lines string
	}{
		"database.sql": {"7.0 to 7.4", false, false, "pages posts categories tags galleries",
			"ids are bigint"},
		"database-core-7.6.8.sql": {"7.5 or newer", true, true, "pages posts categories tags", "7.6.8 by its code"},
	} {
		t.Run(dump, func(t *testing.T) {
			text, err := os.ReadFile(jobstest.Fixture(t, dump))
			if err != nil {
				t.Fatal(err)
			}
			db := jobstest.Open(t, engine)
			if _, err := db.Exec(string(text)); err != nil {
				t.Fatal(err)
			}
			root := t.TempDir()
			code := filepath.Join(root, "platform/core/base/helpers/common.php")
			if err := os.MkdirAll(filepath.Dir(code), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(code, []byte("<?php if (! function_exists('get_core_version')) {\n function "+
				"get_core_version(): string\n {\n return '7.6.8';\n }\n}"), 0o644); err != nil {
				t.Fatal(err)
			}
			p, err := (&cms.Site{DB: db.DB, Root: root}).Probe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if p.Era != want.era || p.CacheTable != want.cache || p.AuditActors != want.actors ||
				strings.Join(p.Content, " ") != want.content ||
				p.Version != "7.6.8" || !p.SlugTranslations || !p.FailedJobUUIDs || p.Zone != "UTC" ||
				len(p.Languages) != 1 {
				t.Errorf("%+v", p)
			}
			if lines := strings.Join(p.Lines(), "\n"); !strings.Contains(lines, want.lines) {
				t.Errorf("no %q in\n%s", want.lines, lines)
			}
		})
	}
}

func TestProbeOfAnOldAndOfAnEmptyDatabase(t *testing.T) {
	db := jobstest.Open(t, jobstest.SQLite)
	site := &cms.Site{DB: db.DB}
	p, err := site.Probe(t.Context())
	if err != nil || p.Era != "unknown" || !strings.Contains(strings.Join(p.Lines(), "\n"), "check the database name") {
		t.Errorf("%+v, %v", p, err)
	}
	db.MustExec(`CREATE TABLE slugs (id int, "key" text, reference_id int, reference_type text, prefix text)`)
	db.MustExec("CREATE TABLE pages (id integer, name text)")
	if p, err = site.Probe(t.Context()); err != nil || p.Era != "5" || p.SlugTranslations || len(p.Content) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestNotificationsFitTheirColumns(t *testing.T) {
	jobstest.EachMySQL(t, testNotificationsFitTheirColumns)
}

func testNotificationsFitTheirColumns(t *testing.T, engine jobstest.Engine) {
	db := jobstest.Open(t, engine)
	site := &cms.Site{DB: db.DB}
	if told, err := site.Notify(t.Context(), jobstestNow, cms.Notification{Title: "x"}); told || err != nil {
		t.Errorf("a CMS without the table: %v, %v", told, err)
	}
	db.MustExec("CREATE TABLE admin_notifications (id bigint AUTO_INCREMENT PRIMARY KEY, title varchar(191) NOT " +
		"NULL, action_label varchar(191), action_url varchar(191), description varchar(400), read_at timestamp NULL, " +
		"created_at timestamp NULL, updated_at timestamp NULL, permission varchar(191))")
	long := cms.Notification{Title: strings.Repeat("ü", 300), Description: strings.Repeat("ß", 500),
		ActionURL: "/admin"}
	if told, err := site.Notify(t.Context(), jobstestNow, long); !told || err != nil {
		t.Fatalf("%v, %v", told, err)
	}
	var row struct {
		Title       string `db:"title"`
		Description string `db:"description"`
		At          string `db:"at"`
	}
	if err := db.Get(&row, "SELECT title, description, DATE_FORMAT(created_at, '%Y-%m-%d %H:%i:%s') AS at FROM "+
		"admin_notifications"); err != nil {
		t.Fatal(err)
	}
	if n := len([]rune(row.Title)); n != 191 || len([]rune(row.Description)) != 400 || row.At != "2026-11-20 12:00:00" {
		t.Errorf("%d characters, %+v", n, row)
	}
}
