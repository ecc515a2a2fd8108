package cli

import (
	"encoding/json"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/jobs"

	"github.com/cmsjobs/cmsjobs/internal/app"
)

func (a *commandLine) kindsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "types",
		Short:   "List the job types that this program can run",
		Example: "  cmsjobs types\n  cmsjobs types --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := a.load()
			if err != nil {
				return err
			}
			registry := jobs.NewRegistry()
			r, err := a.WithoutDatabase(l)
			if err != nil {
				return err
			}
			defer a.closing(r)
			if err := app.RegisterKinds(registry, r); err != nil {
				return err
			}
			type view struct {
				Type        string          `json:"type"`
				Queue       string          `json:"queue"`
				MaxAttempts int             `json:"max_attempts"`
				Timeout     string          `json:"timeout"`
				Limit       int             `json:"limit,omitempty"`
				Payload     json.RawMessage `json:"payload"`
			}
			var views []view
			var cells [][]string
			for _, name := range registry.Types() {
				e, _ := registry.Lookup(name)
				v := view{name, e.Queue, e.Policy.MaxAttempts, e.Policy.Timeout.String(), e.Policy.Limit, e.Example}
				if v.Queue == "" {
					v.Queue = l.Queue.Default
				}
				views = append(views, v)
				cells = append(cells, []string{v.Type, v.Queue, strconv.Itoa(v.MaxAttempts), v.Timeout, string(v.Payload)})
			}
			return a.list(views, []string{"TYPE", "QUEUE", "ATTEMPTS", "TIMEOUT", "PAYLOAD"}, cells, "No types.")
		},
	}
}
