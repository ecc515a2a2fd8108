package sites

import (
	"fmt"
	"testing"

	"github.com/cmsjobs/cmsjobs/config"
)

// Two sites that share a folder or a bucket would delete each other's backups.
func TestSitesShareNothingThatTheyWrite(t *testing.T) {
	load := func(top, a, b string) config.Faults {
		t.Helper()
		file := write(t, fmt.Sprintf("%s\nsites:\n  a: {database: {dsn: 'mysql://u@h/a'}%s}\n  b: {database: {dsn: "+
			"'mysql://other:pw@h/b?tls=true'}%s}\n", top, a, b))
		var all []*config.Loaded
		for _, name := range []string{"a", "b"} {
			l, err := config.Load(config.Sources{File: file, Site: name})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, l)
		}
		return Check(all)
	}
	for _, c := range []struct{ top, a, b, want string }{
		{"", "", "", ""},
		{"backup: {dir: /backups}", "", "", "sites.b.backup.dir"},
		{"backup: {dir: /backups}", "", ", backup: {dir: /backups/b}", ""},
		{"", ", sitemap: {dir: /maps/}", ", sitemap: {dir: /maps}", "sites.b.sitemap.dir"},
		{"storage: {s3: {bucket: x}}", "", "", ""},
		{"storage: {s3: {bucket: x}}\nbackup: {to: [s3]}", "", "", "sites.b.storage.s3.prefix"},
		{"storage: {s3: {bucket: x}}\nbackup: {to: [s3]}", ", storage: {s3: {prefix: a}}",
			", storage: {s3: {prefix: b}}", ""},
		{"database: {own_dsn: 'mysql://h/jobs'}", "", "", "sites.b.database"},
	} {
		got := load(c.top, c.a, c.b)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || got[0].Path != c.want) {
			t.Errorf("%s with %s and %s: %v, want %q", c.top, c.a, c.b, got, c.want)
		}
	}
}
