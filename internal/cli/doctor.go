package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/display"

	"github.com/cmsjobs/cmsjobs/internal/app"

	"github.com/cmsjobs/cmsjobs/internal/doctor"
)

func (a *commandLine) doctorCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation and suggest fixes",
		Long: `Looks at the configuration, the database, the tables, the clocks, the folders, the workers and the
queues, and all conditions that the service watches, and says how to fix what it finds. It changes
nothing but our own tables' version.

Exit codes: 0 nothing is marked fail · 1 something is (with --strict: or warn) · 2 the configuration has
faults · 3 database not usable`,
		Example: "  cmsjobs --cms /var/www/site doctor\n  cmsjobs doctor --json\n  cmsjobs doctor --strict",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := a.load()
			if err != nil {
				return err
			}
			r, err := a.Open(c.Context(), l)
			if err != nil {
				f := doctor.Finding{Check: "database", Status: doctor.Fail, What: err.Error(), Fix: "fix what the message says, then run cmsjobs doctor again"}
				return errors.Join(a.printFindings([]doctor.Finding{f}), err)
			}
			defer a.closing(r)
			return a.examine(c.Context(), r)
		},
	}
	command.Flags().BoolVar(&a.strict, "strict", false, "warnings make the exit code 1, too")
	return command
}

func (a *commandLine) examine(ctx context.Context, r *app.Services) error {
	all := doctor.Run(ctx, r)
	bad := 0
	for _, f := range all {
		if f.Status == doctor.Fail || a.strict && f.Status == doctor.Warn {
			bad++
		}
	}
	if err := a.printFindings(all); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("doctor: %s", display.Plural(bad, "finding needs", "findings need")+" action")
	}
	return nil
}

func (a *commandLine) printFindings(all []doctor.Finding) error {
	if a.global.json {
		return a.printJSON(all)
	}
	for _, f := range all {
		if _, err := fmt.Fprintf(a.out, "%-4s  %-14s %s\n", f.Status, f.Check, display.Printable(f.What)); err != nil {
			return err
		}
		if f.Fix != "" {
			fmt.Fprintf(a.out, "      %-14s → %s\n", "", f.Fix)
		}
	}
	return nil
}
