package demo

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cmsjobs/cmsjobs/config"
)

// ConfigFile names the sites of the demo.
func (d Site) ConfigFile() string { return filepath.Join(cmp.Or(d.root, d.Dir), "sites.yaml") }

// Configure writes the configuration file of the demo's sites.
func Configure(all ...Site) error {
	var text strings.Builder
	text.WriteString("# The demo's sites; it writes this file each time. See: cmsjobs config example\n" +
		"analytics: {goals: [{name: Contact, path: /contact}, {name: Newsletter, event: Signup}, " +
		"{name: Guide, event: Download}]}\nsites:\n")
	for _, d := range all {
		fmt.Fprintf(&text, "  %s: {cms: {dir: %q}}\n", d.Name, d.Dir)
	}
	if err := os.WriteFile(all[0].ConfigFile(), []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("writing the demo's configuration: %w", err)
	}
	return nil
}

// Load is the configuration of a sample site, or with an empty name what the sites
// share. What the user's own configuration says does not count here; more are the command
// line's own flags.
func (d Site) Load(more ...config.Flag) (*config.Loaded, error) {
	values := []string{
		"queue.poll", "200ms", "queue.concurrency", "2", "log.level", "warn",
		"http.admin_user", "admin", "http.admin_password", "demo",
		"webhook.allow_private", "127.0.0.0/8", "webhook.allow_http", "true",
		"backup.free_space", "64MiB", "backup.min_interval", "0s", // each demo makes its backup, however soon
	}
	if d.Name != "" {
		values = append(values, "cms.dir", d.Dir, "mail.driver", "files", "mail.keep_body", "true",
			"mail.dir", filepath.Join(d.Dir, "mails"),
			"queue.export_dir", filepath.Join(d.Dir, "storage", "app"))
	}
	var flags []config.Flag
	for i := 0; i < len(values); i += 2 {
		flags = append(flags, config.Flag{Path: values[i], Value: values[i+1], Name: "the demo"})
	}
	return config.Load(config.Sources{File: d.ConfigFile(), Site: d.Name, Flags: append(flags, more...)})
}
