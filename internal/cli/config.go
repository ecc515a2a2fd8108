package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/config"
)

func (a *commandLine) configCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Show and check the configuration",
		Example: "  cmsjobs config show\n  cmsjobs config check"}
	c.AddCommand(a.configShowCommand(), a.configCheckCommand(), &cobra.Command{
		Use:     "example",
		Short:   "Print a configuration file with every key, its default and what it does",
		Example: "  cmsjobs config example > cmsjobs.yaml",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(config.Example())
			return err
		},
	})
	return c
}

func (a *commandLine) configShowCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:     "show",
		Short:   "Print every value and where it came from; secrets are masked",
		Example: "  cmsjobs --cms /var/www/site config show\n  cmsjobs config show --all --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			l, err := a.load()
			if l == nil {
				return err
			}
			var values []config.Value
			var cells [][]string
			for _, v := range l.Values() {
				if all || v.Origin != "default" {
					values = append(values, v)
					cells = append(cells, []string{v.Path, v.Text, v.Origin})
				}
			}
			nothing := "Everything has its default; --all shows them."
			return errors.Join(a.list(values, []string{"KEY", "VALUE", "FROM"}, cells, nothing), err)
		},
	}
	c.Flags().BoolVar(&all, "all", true, "defaults too; --all=false shows only values that were set")
	return c
}

func (a *commandLine) configCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Find all faults of the configuration at once",
		Long: "Finds all faults of the configuration at once. Exit code 2 when there is one.\nTo check the " +
			"database and the folders, run: cmsjobs doctor",
		Example: "  cmsjobs --config cmsjobs.yaml config check",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			l, err := a.load()
			if err == nil {
				err = a.CheckTypes(l)
			}
			var faults config.Faults
			if errors.As(err, &faults) && a.global.json {
				return errors.Join(a.printJSON(map[string]any{"ok": false, "faults": faults}), err)
			}
			if err != nil {
				return err
			}
			if a.global.json {
				return a.printJSON(map[string]any{"ok": true, "faults": []string{}})
			}
			_, err = fmt.Fprintln(a.out, "The configuration has no fault.")
			return err
		},
	}
}
