package backup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

func TestMissingRightsAreNamed(t *testing.T) {
	for grants, want := range map[string]int{
		"GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION":                         0,
		"GRANT USAGE ON *.* TO `u`@`%`|GRANT SELECT, SHOW VIEW, EVENT, TRIGGER ON `cms`.* TO `u`@`%`": 0,
		"GRANT USAGE ON *.* TO `u`@`%`|GRANT SELECT ON `cms`.* TO `u`@`%`":                            3,
		"GRANT USAGE ON *.* TO `u`@`%`|GRANT ALL PRIVILEGES ON `other`.* TO `u`@`%`":                  4,
		"GRANT USAGE ON *.* TO `u`@`%`|GRANT ALL PRIVILEGES ON `c%`.* TO `u`@`%`":                     0,
		// ANSI_QUOTES
		`GRANT USAGE ON *.* TO "u"@"%"|GRANT SELECT, SHOW VIEW, EVENT, TRIGGER ON "cms".* TO "u"@"%"`: 0,
		// a role: not known
		"GRANT `backups`@`%` TO `u`@`%`|GRANT USAGE ON *.* TO `u`@`%`": 0,
		"GRANT USAGE ON *.* TO `u`@`%`|GRANT SELECT ON `cms`.`posts` TO `u`@`%`|GRANT SHOW VIEW, TRIGGER ON `cms`.* " +
			"TO `u`": 2,
	} {
		if got := lacking(strings.Split(grants, "|"), "cms"); len(got) != want {
			t.Errorf("%s lacks %q", grants, got)
		}
	}
	if !grantCovers("`my\\_cms`.*", "my_cms") || grantCovers("`my\\_cms`.*", "myxcms") ||
		!grantCovers("`my_cms`.*", "myxcms") {
		t.Error("patterns of grants are read wrongly")
	}
}

func TestAnAccountWithoutTriggerRightIsWarnedOf(t *testing.T) {
	jobstest.EachMySQL(t, testAnAccountWithoutTriggerRightIsWarnedOf)
}

func testAnAccountWithoutTriggerRightIsWarnedOf(t *testing.T, engine jobstest.Engine) {
	s := newSite(t, engine)
	name := strings.Split(strings.Split(s.DSN, "/")[1], "?")[0]
	root := s.Root(t)
	root.MustExec("CREATE USER IF NOT EXISTS blind@'%' IDENTIFIED BY 'x'")
	root.MustExec("GRANT SELECT, SHOW VIEW ON " + name + ".* TO blind@'%'")
	s.c.DSN = s.DSNOf(t, "blind", "x")
	s.c.Options.Verify = manifest.LevelNone
	report, _ := s.backup(t, s.handler(t))
	if text := strings.Join(report.Warnings, "\n"); !strings.Contains(text, "TRIGGER") ||
		!strings.Contains(text, "EVENT") || strings.Contains(text, "SHOW VIEW") {
		t.Errorf("warned of %q", text)
	}
}

// A destination that cannot take the backup is named; the others get it.
func TestADestinationWithoutSpaceOrRightsDropsOut(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	gone := filepath.Join(t.TempDir(), "gone")
	s.c.Destinations["readonly"] = local(t, gone)
	if err := os.RemoveAll(gone); err != nil {
		t.Fatal(err)
	}
	s.c.Destinations["full"] = fullDisk{local(t, t.TempDir())}
	report, err := s.handler(t).Create(t.Context(), Request{Database: true, Files: true}, nil)
	if err == nil || report.Status != manifest.Complete || len(report.Outcomes) != 3 {
		t.Fatalf("%+v, %v", report, err)
	}
	for _, o := range report.Outcomes {
		want := map[string]string{"local": "", "readonly": "nothing can be written there",
			"full": "of free space"}[o.Destination]
		if (o.Error == "") != (want == "") || !strings.Contains(o.Error, want) {
			t.Errorf("%+v", o)
		}
	}
	s.c.Destinations = map[string]storage.Store{"full": s.c.Destinations["full"]}
	report, err = s.handler(t).Create(t.Context(), Request{Database: true}, nil)
	if err == nil || report.Status != manifest.Failed || !strings.Contains(err.Error(), "of free space") {
		t.Errorf("%+v, %v", report, err)
	}
}

// fullDisk is a store on a full disk.
type fullDisk struct{ storage.Store }

func (fullDisk) Free() (int64, error) { return 1000, nil }

func TestLinksAreNamedAndNotFollowed(t *testing.T) {
	s := newSite(t, jobstest.SQLite)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(s.files, "news", "link")); err != nil {
		t.Fatal(err)
	}
	report, err := s.handler(t).Create(t.Context(), Request{Files: true}, nil)
	if err != nil || report.Files != 3 || !strings.Contains(strings.Join(report.Warnings, "\n"),
		"storage/news/link is a link") {
		t.Errorf("%+v, %v", report, err)
	}
}
