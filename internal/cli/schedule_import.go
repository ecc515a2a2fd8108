package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/crontab"
)

// maxCrontab bounds the file that schedule import reads.
const maxCrontab = 1 << 20

func (a *commandLine) scheduleImportCommand() *cobra.Command {
	var o crontab.Options
	c := &cobra.Command{Use: "import FILE", Short: "Write a crontab as sections of the configuration",
		Long: `Reads a crontab, or the output of php artisan schedule:list --json (- is standard input), and
prints the sections external.commands and schedule.entries for the configuration. Nothing is
changed: read them, put them into the file, and remove the lines of the crontab. A line that cannot
become an entry is printed as a comment with its reason.`,
		Example: "  crontab -l | cmsjobs schedule import -\n  cmsjobs schedule import /etc/crontab --system\n  php " +
			"artisan " +
			"schedule:list --json | cmsjobs --cms /var/www/site schedule import -",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := a.readFile(args[0])
			if err != nil {
				return app.UsageError{Err: err}
			}
			if o.Dir == "" {
				o.Dir = a.global.cms
			}
			entries, left, err := crontab.Read(text, o)
			if err != nil {
				return app.UsageError{Err: err}
			}
			yaml, err := crontab.YAML(entries, left)
			if err == nil {
				_, err = a.out.Write(yaml)
			}
			return err
		}}
	c.Flags().BoolVar(&o.System, "system", false, "each line names a user, as in /etc/crontab and /etc/cron.d")
	c.Flags().StringVar(&o.Dir, "dir", "", "where commands of Laravel's scheduler run (default: --cms)")
	return c
}

func (a *commandLine) readFile(name string) ([]byte, error) {
	in := a.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was read
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxCrontab+1))
	if err == nil && len(text) > maxCrontab {
		err = fmt.Errorf("%s has more than %d bytes", name, maxCrontab)
	}
	return text, err
}
