package terminal

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/ops"
)

// Program is what the commands of this package need of the command line.
type Program struct {
	// Open does something with the database of the configuration.
	Open func(*cobra.Command, func(context.Context, Source) error) error
	// Output is where a command prints; flags were read.
	Output func() Output
	// Token is that of the environment, for a service that is asked by its address.
	Token func() string
	// Usage makes a wrong argument of an error.
	Usage    func(error) error
	Complete func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)
	Now      func() time.Time
}

// options are the flags of a command.
type options struct {
	url   string
	every time.Duration
	once  bool
}

// shortest is how often figures are asked for at most.
const shortest = 200 * time.Millisecond

func (o *options) flags(c *cobra.Command) {
	c.Flags().StringVar(&o.url, "url", "", "ask the service at this address, with the token in CMSJOBS_TOKEN, "+
		"instead of the database")
	c.Flags().DurationVar(&o.every, "interval", 2*time.Second, "how often to ask")
}

// TopCommand is cmsjobs top.
func (p Program) TopCommand() *cobra.Command {
	var o options
	c := &cobra.Command{Use: "top", Short: "Show the overview in the terminal, live",
		Long: `Shows what the page Overview shows: conditions that hold, what waits and runs, queues, workers, failures
by cause, and the next entries of the schedule. It changes nothing. Without a terminal it prints a line each time.`,
		Example: "  cmsjobs top\n  cmsjobs top --once\n  CMSJOBS_TOKEN=… cmsjobs top --url https://shop.example.com",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.with(c, o, func(ctx context.Context, s Source) error {
				_, err := Screen[Figures]{Every: o.every, Ask: s.Figures, Draw: Top, Lines: TopLines,
					Now: p.Now}.Show(ctx, p.output(o))
				return err
			})
		}}
	o.flags(c)
	c.Flags().BoolVar(&o.once, "once", false, "print the figures once, as a line")
	return c
}

// newestJobs is how many jobs are watched.
const newestJobs = 50

// WatchCommand is cmsjobs jobs watch.
func (p Program) WatchCommand() *cobra.Command {
	var o options
	var f ops.Filter
	c := &cobra.Command{Use: "watch [ID]", Short: "Watch the newest jobs, or one until its end",
		Long: `Watches the newest jobs that fit the flags, or one job with its progress and log until it ends: the exit code
is 1 where it failed or was cancelled. Without a terminal it prints a line for each change.`,
		Example: "  cmsjobs jobs watch --type mail.send\n  cmsjobs jobs watch 42", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: p.Complete,
		RunE: func(c *cobra.Command, args []string) error {
			return p.with(c, o, func(ctx context.Context, s Source) error {
				if len(args) == 1 {
					return p.watch(ctx, s, args[0], o)
				}
				ask := func(ctx context.Context) ([]ops.JobView, error) { return s.Jobs(ctx, f, newestJobs) }
				_, err := Screen[[]ops.JobView]{Every: o.every, Ask: ask, Draw: Newest, Lines: NewestLines,
					Now: p.Now}.Show(ctx, p.output(o))
				return err
			})
		}}
	o.flags(c)
	c.Flags().StringSliceVar(&f.Status, "status", nil, "queued, processing, completed, failed, cancelled")
	c.Flags().StringSliceVar(&f.Type, "type", nil, "types")
	c.Flags().StringSliceVar(&f.Queue, "queue", nil, "queues")
	return c
}

func (p Program) watch(ctx context.Context, s Source, id string, o options) error {
	ask := func(ctx context.Context) (JobFigures, error) { return s.Job(ctx, id) }
	last, err := Screen[JobFigures]{Every: o.every, Ask: ask, Draw: OneJob, Lines: OneJobLines,
		Ended: JobFigures.Ended, Now: p.Now}.Show(ctx, p.output(o))
	if err == nil && last.Ended() && last.Job.Status != "completed" {
		return fmt.Errorf("job %s: %s", id, last.Job.Status)
	}
	return err
}

// Follow prints the lines of a job's log, and new ones until it ends.
func (p Program) Follow(ctx context.Context, s Source, id string) error {
	out := p.Output()
	out.TTY = false // lines are printed in a terminal, too
	ask := func(ctx context.Context) (JobFigures, error) { return s.Job(ctx, id) }
	_, err := Screen[JobFigures]{Every: time.Second, Ask: ask, Lines: LogLines, Ended: JobFigures.Ended,
		Now: p.Now}.Show(ctx, out)
	return err
}

// with does something with the source that the flags name.
func (p Program) with(c *cobra.Command, o options, do func(context.Context, Source) error) error {
	if o.every < shortest {
		return p.Usage(fmt.Errorf("--interval is %s; it must be at least %s", o.every, shortest))
	}
	if o.url == "" {
		return p.Open(c, do)
	}
	r, err := NewRemote(o.url, p.Token(), p.Now)
	if err != nil {
		return p.Usage(err)
	}
	return do(c.Context(), r)
}

func (p Program) output(o options) Output {
	out := p.Output()
	out.Once = o.once
	return out
}
