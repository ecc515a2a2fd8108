package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/internal/measure"
)

func (a *commandLine) benchCommand() *cobra.Command {
	var o struct {
		jobs, slots, probes int
		depths              []int
		idle                time.Duration
		here                bool
	}
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast jobs are enqueued, claimed and run",
		Long: `Measures jobs that do nothing: enqueued one by one and in bulk, worked off, picked up by an idle
worker, claimed over a few and over a million waiting ones, and what an idle worker asks of the
database and occupies. By default on a separate SQLite database in a temporary folder; --here
measures on the configured database, in the queue "cmsjobs-bench", takes its waiting jobs away
again and leaves its history there.`,
		Example: "  cmsjobs bench\n  cmsjobs --dsn mysql://root@127.0.0.1/bench bench --here --jobs 20000 --slots " +
			"100 --depth 1000,100000",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var r *app.Services
			var err error
			if o.here {
				r, err = a.openConfigured(c.Context(), benchFlags(o.slots)...)
			} else {
				var dir string
				if dir, err = os.MkdirTemp("", "cmsjobs-bench-"); err != nil {
					return err
				}
				defer os.RemoveAll(dir)
				r, err = a.openBench(c.Context(), dir, o.slots)
			}
			if err != nil {
				return err
			}
			defer a.closing(r)
			b := &measure.Bench{Services: r, Now: a.Now, Jobs: o.jobs, Probes: o.probes, Depths: o.depths,
				Idle: o.idle, Guest: o.here}
			figures, err := b.Run(c.Context())
			if err != nil {
				return err
			}
			cells := make([][]string, len(figures))
			for i, f := range figures {
				cells[i] = []string{f.Name, fmt.Sprintf("%.*f", f.Digits, f.Value), f.Unit}
			}
			return a.list(map[string]any{"store": r.Store.Describe(), "slots": o.slots, "jobs": o.jobs,
				"figures": figures}, []string{"FIGURE", "VALUE", "UNIT"}, cells, "")
		},
	}
	c.Flags().IntVar(&o.jobs, "jobs", 10000, "how many jobs are worked off")
	c.Flags().IntVar(&o.slots, "slots", 10, "slots of the worker")
	c.Flags().IntVar(&o.probes, "probes", 100, "how many pick-ups are timed")
	c.Flags().IntSliceVar(&o.depths, "depth", []int{1000, 100_000, 1_000_000}, "over how many waiting jobs claims "+
		"are measured, fewest first")
	c.Flags().DurationVar(&o.idle, "idle", 15*time.Second, "how long an idle worker is watched; 0 leaves it out")
	c.Flags().BoolVar(&o.here, "here", false, "measure on the configured database")
	return c
}

func benchFlags(slots int) []config.Flag {
	return []config.Flag{{Path: "queue.queues", Value: measure.Queue, Name: "bench"},
		{Path: "queue.memory", Value: "0", Name: "bench"}, // nobody would start it again
		{Path: "queue.concurrency", Value: fmt.Sprint(slots), Name: "bench"},
		{Path: "queue.prefetch", Value: fmt.Sprint(min(slots*10, 10000)), Name: "bench"},
		{Path: "log.level", Value: "warn", Name: "bench"}}
}

func (a *commandLine) openBench(ctx context.Context, dir string, slots int) (*app.Services, error) {
	path := filepath.Join(dir, "bench.sqlite")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return nil, err
	}
	db, err := database.Connect(ctx, database.ConnectOptions{DSN: "sqlite:" + path})
	if err != nil {
		return nil, err
	}
	if _, err := tables.CreateTables(ctx, db, tables.Stock, ""); err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	empty := filepath.Join(dir, "cmsjobs.yaml")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		return nil, err
	}
	flags := append(benchFlags(slots), config.Flag{Path: "database.dsn", Value: "sqlite:" + path, Name: "bench"})
	l, err := config.Load(config.Sources{File: empty, Flags: flags})
	if err != nil {
		return nil, err
	}
	return a.Open(ctx, l)
}
