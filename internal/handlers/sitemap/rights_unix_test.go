//go:build unix

package sitemap_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/jobs/jobstest"
)

// A web server of another account reads what is published, whatever the umask.
func TestTheWebServerMayReadTheMap(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	site := plainCMS(t, jobstest.SQLite, "bigint")
	blog(t, site)
	write(t, handler(t, site, func(c *sitemap.Config) { c.Options.Gzip = true; c.Options.Robots = true }), false)
	for _, name := range append(files(t, site), "robots.txt") {
		if info, err := os.Stat(filepath.Join(site.Public(), name)); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}
