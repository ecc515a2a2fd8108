package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *commandLine) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  cmsjobs version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": a.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
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
