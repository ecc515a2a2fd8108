package demo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cmsjobs/cmsjobs/config"
)

// Load is the configuration of the sample site, which is named as any site is:
// by its folder. What the user's own configuration says does not count here;
// more are the command line's own flags.
func (d Site) Load(more ...config.Flag) (*config.Loaded, error) {
	flags := []config.Flag{
		{Path: "cms.dir", Value: d.Dir, Name: "the demo"},
		{Path: "mail.driver", Value: "files", Name: "the demo"},
		{Path: "mail.dir", Value: filepath.Join(d.Dir, "mails"), Name: "the demo"},
		{Path: "queue.poll", Value: "200ms", Name: "the demo"},
		{Path: "queue.concurrency", Value: "2", Name: "the demo"},
		{Path: "queue.export_dir", Value: filepath.Join(d.Dir, "storage", "app"), Name: "the demo"},
		{Path: "log.level", Value: "warn", Name: "the demo"},
		{Path: "http.admin_user", Value: "admin", Name: "the demo"},
		{Path: "http.admin_password", Value: "demo", Name: "the demo"},
		{Path: "http.listen", Value: freePort(), Name: "the demo"},
		{Path: "webhook.allow_private", Value: "127.0.0.0/8", Name: "the demo"},
		{Path: "webhook.allow_http", Value: "true", Name: "the demo"},
		{Path: "backup.free_space", Value: "64MiB", Name: "the demo"},
		{Path: "backup.min_interval", Value: "0s", Name: "the demo"}, // each demo makes its backup, however soon
	}
	empty := filepath.Join(d.Dir, "cmsjobs.yaml")
	if _, err := os.Stat(empty); errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(empty, []byte("# The demo's configuration; see: cmsjobs config example\n"),
			0o600); err != nil {
			return nil, fmt.Errorf("writing the demo's configuration: %w", err)
		}
	}
	return config.Load(config.Sources{File: empty, Flags: append(flags, more...)})
}
