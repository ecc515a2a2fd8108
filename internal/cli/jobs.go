package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

func (a *commandLine) jobsCommand() *cobra.Command {
	c := &cobra.Command{Use: "jobs", Short: "List, show, cancel and retry jobs", Example: "  cmsjobs jobs list\n  " +
		"cmsjobs jobs show 42"}
	c.AddCommand(a.jobsListCommand(), a.jobsShowCommand(), a.jobsRunsCommand(), a.jobsLogCommand(),
		a.jobsExplainCommand(),
		a.jobsCancelCommand(), a.jobsRetryCommand(), a.jobsStatsCommand(), a.terminal().WatchCommand())
	return a.unmaskedFlag(c)
}

func (a *commandLine) jobsListCommand() *cobra.Command {
	return a.lists(&cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List jobs, newest first",
		Example: "  cmsjobs jobs list --status failed --since 24h\n  cmsjobs jobs list --type mail.send --json",
		Args:    cobra.NoArgs,
	})
}

// lists makes a command list jobs: those of the statuses, or of those that its flags
// choose.
func (a *commandLine) lists(c *cobra.Command, statuses ...string) *cobra.Command {
	f := ops.Filter{Status: statuses}
	var p jobs.Page
	c.RunE = func(c *cobra.Command, _ []string) error {
		filter, err := a.filter(f)
		if err != nil {
			return err
		}
		return a.withServices(c, func(ctx context.Context, r *app.Services) error {
			return a.listJobs(ctx, r, filter, p)
		})
	}
	filterFlags(c, &f, statuses == nil)
	pageFlags(c, &p)
	return c
}

// waitsFor is a job's last error or, where it has none, what is down that it
// waits for.
func waitsFor(r jobs.Record, v ops.JobView, down []explain.Breaker) string {
	if name := explain.HeldBy(r, down); name != "" && v.Error == "" {
		return "waits: " + name + " is out"
	}
	return v.Error
}

func (a *commandLine) listJobs(ctx context.Context, r *app.Services, f jobs.Filter, p jobs.Page) error {
	list, err := r.History.Jobs(ctx, f.WithoutSilenced(r.Config.PHP.Silenced), p)
	if err != nil {
		return err
	}
	viewer, err := r.Viewer(a.unmasked)
	if err != nil {
		return err
	}
	views := ops.Listed(list, p, viewer.Job)
	if a.global.json {
		return a.printJSON(views)
	}
	down, err := r.OpenBreakers(ctx)
	if err != nil {
		return err
	}
	columns := ops.JobColumns()
	head := []string{"ID", "TYPE", "STATUS", "WHEN"}
	for _, c := range columns {
		head = append(head, strings.ToUpper(c.Name))
	}
	cells := make([][]string, len(views.Items))
	now := a.Now()
	for i, v := range views.Items {
		when := v.EnqueuedAt
		if !v.EndedAt.IsZero() {
			when = v.EndedAt
		}
		cells[i] = []string{v.ID, v.Type, statusOf(v), display.Ago(when, now)}
		for _, c := range columns {
			cells[i] = append(cells[i], c.Text(v))
		}
		cells[i] = append(cells[i], display.Short(waitsFor(list.Items[i], v, down), 50))
	}
	if err := a.list(nil, append(head, "ERROR"), cells, "No jobs."); err != nil {
		return err
	}
	if views.Next != "" {
		a.printf("More: --cursor %s", views.Next)
	}
	return nil
}

func statusOf(v ops.JobView) string {
	if v.Detail == "" {
		return v.Status
	}
	return v.Status + " (" + v.Detail + ")"
}

// jobsShowCommand shows a job, by its number only one in these statuses.
func (a *commandLine) jobsShowCommand(statuses ...jobs.Status) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show one job with its payload, runs and log lines",
		Long: `Shows one job, by its UUID or its row's number, with its payload, its runs and what its handler
wrote. With --json it is the job as GET /api/v1/jobs/ID answers it; jobs runs and jobs log have
the rest.`,
		Example: "  cmsjobs jobs show 42\n  cmsjobs jobs show 0198c1d2-… --json",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: a.completeJobs(),
		RunE: a.onJob(statuses, func(ctx context.Context, r *app.Services, j jobs.Record, v ops.Viewer) error {
			if a.global.json {
				return a.printJSON(v.Job(j))
			}
			return a.showJob(ctx, r, j, v)
		}),
	}
}

// onJob does something with the job that the one argument names.
func (a *commandLine) onJob(statuses []jobs.Status, do func(context.Context, *app.Services, jobs.Record,
	ops.Viewer) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		return a.withServices(c, func(ctx context.Context, r *app.Services) error {
			j, err := r.History.JobAmong(ctx, args[0], statuses)
			if err != nil {
				return err
			}
			v, err := r.Viewer(a.unmasked)
			if err != nil {
				return err
			}
			return do(ctx, r, j, v)
		})
	}
}

func (a *commandLine) showJob(ctx context.Context, r *app.Services, j jobs.Record, v ops.Viewer) error {
	runs, err := r.History.Runs(ctx, jobs.Filter{UUIDs: []string{j.UUID}}, jobs.Page{Limit: 100})
	if err != nil {
		return err
	}
	lines, err := r.History.Log(ctx, j.UUID, ops.MaxLogLines)
	if err != nil {
		return err
	}
	a.describeJob(v.Job(j))
	for _, line := range v.Lines(lines) {
		fmt.Fprintf(a.out, "  %s  %s\n", line.At.UTC().Format(time.TimeOnly), display.Printable(line.Text))
	}
	if len(runs.Items) == 0 {
		return nil
	}
	fmt.Fprintln(a.out)
	return a.runTable(ops.Each(runs.Items, v.Run))
}

func (a *commandLine) describeJob(v ops.JobView) {
	now := a.Now()
	pairs := [][]string{{"ID", v.ID}, {"Number", strconv.FormatInt(v.Number, 10)}, {"Type", v.Type}, {"Queue", v.Queue},
		{"Status", statusOf(v)}, {"Attempts", v.AttemptText()}, {"Enqueued", display.Ago(v.EnqueuedAt, now)},
		{"Due", display.Ago(v.RunAt, now)},
		{"Started", display.Ago(v.StartedAt, now)}, {"Ended", display.Ago(v.EndedAt, now)}, {"Worker", workerOf(v)},
		{"Result", display.Short(string(v.Result), 300)}, {"Payload", payloadOf(v)},
		{"Metadata", display.Short(string(v.Metadata), 300)}}
	for _, p := range append(pairs, phpPairs(v.PHP)...) {
		if p[1] != "" && p[1] != "–" && p[1] != "{}" {
			fmt.Fprintf(a.out, "%-9s %s\n", p[0], display.Printable(p[1]))
		}
	}
	if v.Error != "" {
		fmt.Fprintln(a.out, "\nError:")
		for _, line := range strings.Split(v.Error, "\n") {
			fmt.Fprintln(a.out, "  "+display.Printable(line))
		}
	}
}

// payloadOf is what the job is to do, as far as the history keeps it.
func payloadOf(v ops.JobView) string {
	if v.PayloadOmitted {
		return "not kept: it was confidential or too large"
	}
	return display.Short(string(v.Payload), 2000)
}

// workerOf is who runs or ran the job.
func workerOf(v ops.JobView) string {
	if v.Process == 0 {
		return v.Worker
	}
	return fmt.Sprintf("%s, PHP process %d", v.Worker, v.Process)
}

// phpPairs are what the payload of a job of PHP's says.
func phpPairs(p *ops.PHPView) [][]string {
	if p == nil {
		return nil
	}
	pairs := [][]string{{"Class", p.Class}, {"About", p.Subject}, {"Tags", strings.Join(p.Tags, " ")},
		{"Batch", p.Batch}, {"Then", strings.Join(p.Chain, ", ")}, {"Unread", p.Problem}}
	if p.Encrypted {
		pairs = append(pairs, []string{"Encrypted", "yes: its properties are not shown"})
	}
	for _, x := range p.Properties {
		pairs = append(pairs, []string{"  " + x.Name, display.Short(x.Text(), 300)})
	}
	return pairs
}

func (a *commandLine) runTable(runs []ops.RunView) error {
	now := a.Now()
	cells := make([][]string, len(runs))
	for i, run := range runs {
		took := milliseconds(run.DurationMS)
		cells[i] = []string{run.Job, run.Type, strconv.Itoa(run.Attempt), run.Outcome, display.Ago(run.EndedAt, now),
			took.String(), run.Worker, display.Short(run.Error, 60)}
	}
	return a.list(nil, []string{"JOB", "TYPE", "RUN", "OUTCOME", "ENDED", "TOOK", "WORKER", "ERROR"}, cells, "No runs.")
}

func (a *commandLine) jobsRunsCommand() *cobra.Command {
	var f ops.Filter
	var p jobs.Page
	c := &cobra.Command{
		Use:     "runs [ID]",
		Short:   "List the attempts of one job, or of all, newest first",
		Example: "  cmsjobs jobs runs 42\n  cmsjobs jobs runs --status failed --since 1d",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			filter, err := a.filter(f)
			if err != nil {
				return err
			}
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				if len(args) == 1 {
					j, err := r.History.Job(ctx, args[0])
					if err != nil {
						return err
					}
					filter.UUIDs = []string{j.UUID}
				}
				runs, err := r.History.Runs(ctx, filter, p)
				if err != nil {
					return err
				}
				v, err := r.Viewer(a.unmasked)
				if err != nil {
					return err
				}
				views := ops.Listed(runs, p, v.Run)
				if a.global.json {
					return a.printJSON(views)
				}
				return a.runTable(views.Items)
			})
		},
	}
	filterFlags(c, &f, true)
	pageFlags(c, &p)
	return c
}

func (a *commandLine) jobsLogCommand() *cobra.Command {
	follow := false
	c := &cobra.Command{Use: "log ID", Short: "Show what a job's handler wrote, oldest first",
		Example: "  cmsjobs jobs log 42\n  cmsjobs jobs log 42 --follow", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.completeJobs(),
		RunE: a.onJob(nil, func(ctx context.Context, r *app.Services, j jobs.Record, v ops.Viewer) error {
			if follow {
				source, err := a.figures(r)
				if err != nil {
					return err
				}
				return a.terminal().Follow(ctx, source, ops.IDOf(j))
			}
			lines, err := r.History.Log(ctx, j.UUID, ops.MaxLogLines)
			if err != nil {
				return err
			}
			view := ops.LogView{Lines: v.Lines(lines)}
			cells := ops.Each(view.Lines, func(l jobs.LogLine) []string {
				return []string{l.At.UTC().Format(time.DateTime), l.Text}
			})
			return a.list(view, []string{"AT (UTC)", "LINE"}, cells, "No lines.")
		})}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "print new lines until the job ends")
	return c
}

func (a *commandLine) jobsExplainCommand() *cobra.Command {
	return &cobra.Command{Use: "explain ID", Short: "Say why a job is not running",
		Example: "  cmsjobs jobs explain 17", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeJobs(),
		RunE: a.onJob(nil, func(ctx context.Context, r *app.Services, j jobs.Record, v ops.Viewer) error {
			s, err := r.Snapshot(ctx, j)
			if err != nil {
				return err
			}
			view := v.Explanation(s)
			cells := ops.Each(view.Reasons, func(reason explain.Reason) []string {
				if reason.Until.IsZero() {
					return []string{reason.Text, ""}
				}
				return []string{reason.Text, reason.Until.Format(time.RFC3339)}
			})
			return a.list(view, []string{"REASON", "UNTIL"}, cells, "")
		})}
}

func (a *commandLine) jobsStatsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "stats",
		Short:   "Count jobs by status and queue",
		Example: "  cmsjobs jobs stats\n  cmsjobs jobs stats --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				stats, err := r.History.Stats(ctx)
				if err != nil {
					return err
				}
				s := ops.Stats(stats)
				if a.global.json {
					return a.printJSON(s)
				}
				_, err = fmt.Fprintf(a.out, "queued %d · delayed %d · PHP's own %d · processing %d · completed %d · "+
					"failed %d · cancelled %d · %.1f %% succeeded · %s on average\n\n",
					s.Queued, s.Delayed, s.Foreign, s.Processing, s.Completed, s.Failed, s.Cancelled,
					100*s.SuccessRate, milliseconds(s.AvgDurationMS))
				if err != nil || len(s.Queues) == 0 {
					return err
				}
				return a.listQueues(s.Queues, s.MoreQueues)
			})
		},
	}
}
