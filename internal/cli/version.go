package cli

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func (a *commandLine) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  cmsjobs version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": a.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" +
				runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						v["commit"] = s.Value
					}
				}
			}
			if a.global.json {
				return a.printJSON(v)
			}
			_, err := fmt.Fprintf(a.out, "cmsjobs %s (%s, %s)\n", v["version"], v["go"], v["platform"])
			return err
		},
	}
}

func (a *commandLine) manCommand() *cobra.Command {
	return &cobra.Command{Use: "man DIR", Short: "Write manual pages into a folder",
		Example: "  cmsjobs man /usr/local/share/man/man1 && man cmsjobs-backup", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			// A fixed date: the same program writes the same pages.
			epoch := time.Unix(0, 0).UTC()
			root := c.Root()
			root.DisableAutoGenTag = true
			if err := doc.GenManTree(root, &doc.GenManHeader{Title: "CMSJOBS", Section: "1", Source: "cmsjobs " +
				a.Version, Date: &epoch}, args[0]); err != nil {
				return fmt.Errorf("writing the manual pages: %w", err)
			}
			return nil
		}}
}
