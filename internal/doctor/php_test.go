package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPHPWorkersAreReadFromTheirCommandLines(t *testing.T) {
	for line, want := range map[string]string{
		"php artisan queue:work": "queue:work  default",
		"/usr/bin/php8.3 /var/www/site/artisan queue:work database --queue=high,low --tries=3": "queue:work database high,low",
		"php artisan queue:listen --queue mail redis":                                          "queue:listen redis mail",
		"php artisan horizon": "horizon  default",
		"php artisan queue:work database --name=cmsjobs --queue=default": "",
		"php artisan queue:work database --name cmsjobs":                 "",
		"php artisan queue:work -v --sleep=3":                            "queue:work  default",
		"php artisan serve":                                              "",
		"vi artisan":                                                     "",
		"":                                                               "",
	} {
		got := ""
		if w, is := parsePHPWorker(strings.Fields(line)); is {
			got = strings.Join([]string{w.command, w.connection, strings.Join(w.queues, ",")}, " ")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestAWorkerBelongsToTheSiteOfItsArtisan(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"releases/1", "releases/2", "other"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("releases/2", filepath.Join(root, "current")); err != nil {
		t.Skip(err)
	}
	site := filepath.Join(root, "current", "artisan")
	var of []string
	for name, w := range map[string]phpWorker{
		"same": {artisan: site}, "resolved": {artisan: "artisan", dir: filepath.Join(root, "releases", "2")},
		"earlier release": {artisan: filepath.Join(root, "releases", "1", "artisan")},
		"another account": {artisan: "artisan"}, "another site": {artisan: filepath.Join(root, "other", "artisan")}} {
		if w.ofSite(site) {
			of = append(of, name)
		}
	}
	slices.Sort(of)
	if want := []string{"another account", "earlier release", "resolved", "same"}; !slices.Equal(of, want) {
		t.Errorf("of the site are %q, want %q", of, want)
	}
}
