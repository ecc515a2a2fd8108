package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/explain"
)

func (a *commandLine) jobsCommand() *cobra.Command {
	c := &cobra.Command{Use: "jobs", Short: "List, show, cancel and retry jobs", Example: "  cmsjobs jobs list\n  cmsjobs jobs show 42"}
	c.AddCommand(a.jobsListCommand(), a.jobsShowCommand(), a.jobsExplainCommand(), a.jobsCancelCommand(), a.jobsRetryCommand(), a.jobsStatsCommand())
	return c
}

// filterFlags are the words that choose jobs.
type filterFlags struct {
	statuses, types, queues []string
	text, cause             string
	since, until            string
}

func (f *filterFlags) add(c *cobra.Command, withState bool) {
	if withState {
		c.Flags().StringSliceVar(&f.statuses, "status", nil, "queued, processing, completed, failed, cancelled")
	}
	c.Flags().StringSliceVar(&f.types, "type", nil, "types")
	c.Flags().StringSliceVar(&f.queues, "queue", nil, "queues")
	c.Flags().StringVar(&f.text, "text", "", "text in the payload or the error")
	c.Flags().StringVar(&f.cause, "cause", "", "fingerprint of a failure (failed groups)")
	c.Flags().StringVar(&f.since, "since", "", "not before: a time, or so long ago (2h, 3d)")
	c.Flags().StringVar(&f.until, "until", "", "before: a time, or so long ago")
}

func (f *filterFlags) empty() bool {
	return len(f.statuses)+len(f.types)+len(f.queues) == 0 && f.text+f.cause+f.since+f.until == ""
}

func (f *filterFlags) filter(now time.Time) (jobs.Filter, error) {
	out := jobs.Filter{Types: f.types, Queues: f.queues, Text: f.text, Cause: f.cause}
	for _, word := range f.statuses {
		state, ok := jobs.ParseStatus(word)
		if !ok {
			return out, app.Usagef("%q is no status: queued, processing, completed, failed or cancelled", word)
		}
		out.Statuses = append(out.Statuses, state)
	}
	var err error
	if out.Since, err = instant(f.since, now); err == nil {
		out.Until, err = instant(f.until, now)
	}
	return out, err
}

// instant reads a time, or a length of time before now.
func instant(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly} {
		if t, err := time.Parse(form, text); err == nil {
			return t, nil
		}
	}
	if d, err := config.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	return time.Time{}, app.Usagef("%q is neither a time (2006-01-02T15:04:05Z) nor a length of time (2h, 3d)", text)
}

func (a *commandLine) jobsListCommand() *cobra.Command {
	var f filterFlags
	var p jobs.Page
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List jobs, newest first",
		Example: "  cmsjobs jobs list --status failed --since 24h\n  cmsjobs jobs list --type mail.send --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			filter, err := f.filter(a.Now())
			if err != nil {
				return err
			}
			return a.withServices(c, func(ctx context.Context, r *app.Services) error { return a.listJobs(ctx, r, filter, p) })
		},
	}
	f.add(c, true)
	limitFlag(c, &p.Limit, 50, "how many")
	c.Flags().StringVar(&p.Cursor, "cursor", "", "continue a list where it ended")
	return c
}

// whyNot is a job's last error or, where it has none, what is down that it
// waits for.
func whyNot(j jobs.Record, down []explain.Breaker) string {
	if name := explain.HeldBy(j, down); name != "" && j.Error == "" {
		return "waits: " + name + " is out"
	}
	return j.Error
}

func (a *commandLine) listJobs(ctx context.Context, r *app.Services, f jobs.Filter, p jobs.Page) error {
	list, err := r.History.Jobs(ctx, f, p)
	if err != nil {
		return err
	}
	down, err := r.OpenBreakers(ctx)
	if err != nil {
		return err
	}
	views := make([]jobView, len(list.Items))
	cells := make([][]string, len(list.Items))
	now := a.Now()
	for i, j := range list.Items {
		views[i] = viewOf(j, false)
		state := string(j.Status)
		if j.Detail != "" {
			state += " (" + j.Detail + ")"
		}
		when := j.EnqueuedAt
		if !j.EndedAt.IsZero() {
			when = j.EndedAt
		}
		cells[i] = []string{j.UUID, j.Type, j.Queue, state, attempts(j), display.Ago(when, now), display.Short(whyNot(j, down), 50)}
	}
	answer := map[string]any{"jobs": views, "total": list.Total, "next": list.Next}
	if err := a.list(answer, []string{"ID", "TYPE", "QUEUE", "STATUS", "ATTEMPT", "WHEN", "ERROR"}, cells, "No jobs."); err != nil {
		return err
	}
	if list.Next != "" {
		a.printf("More: --cursor %s", list.Next)
	}
	return nil
}

func attempts(j jobs.Record) string {
	if j.Status == jobs.StatusFailed && j.Attempt == 0 { // PHP's, or from before the history: nobody wrote it down
		return "–"
	}
	if j.MaxAttempts == 0 {
		return strconv.Itoa(j.Attempt)
	}
	return fmt.Sprintf("%d/%d", j.Attempt, j.MaxAttempts)
}

// jobsShowCommand shows a job, by its number only one in these states.
func (a *commandLine) jobsShowCommand(states ...jobs.Status) *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show one job with its payload, runs and log lines",
		Long:    "Shows one job, by its UUID or its row's number, with its payload, its runs and what its handler wrote.",
		Example: "  cmsjobs jobs show 42\n  cmsjobs jobs show 0198c1d2-… --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error { return a.showJob(ctx, r, args[0], states) })
		},
	}
}

func (a *commandLine) showJob(ctx context.Context, r *app.Services, id string, states []jobs.Status) error {
	j, err := r.History.JobAmong(ctx, id, states)
	if err != nil {
		return err
	}
	runs, err := r.History.Runs(ctx, jobs.Filter{UUIDs: []string{j.UUID}}, jobs.Page{Limit: 100})
	if err != nil {
		return err
	}
	lines, err := r.History.Log(ctx, j.UUID, 1000)
	if err != nil {
		return err
	}
	if a.global.json {
		return a.printJSON(map[string]any{"job": viewOf(j, true), "runs": runViews(runs.Items), "log": lines})
	}
	now := a.Now()
	pairs := [][]string{{"ID", strconv.FormatInt(j.ID, 10)}, {"UUID", j.UUID}, {"Type", j.Type}, {"Queue", j.Queue},
		{"State", strings.TrimSpace(string(j.Status) + " " + j.Detail)}, {"Attempt", attempts(j)}, {"Enqueued", display.Ago(j.EnqueuedAt, now)},
		{"Due", display.Ago(j.RunAt, now)}, {"Started", display.Ago(j.StartedAt, now)}, {"Ended", display.Ago(j.EndedAt, now)}, {"Worker", j.Worker},
		{"Result", display.Short(string(j.Result), 300)}, {"Payload", display.Short(string(j.Payload), 2000)}}
	for _, p := range pairs {
		if p[1] != "" && p[1] != "–" {
			fmt.Fprintf(a.out, "%-9s %s\n", p[0], display.Printable(p[1]))
		}
	}
	if j.Error != "" {
		fmt.Fprintln(a.out, "\nError:")
		for _, line := range strings.Split(j.Error, "\n") {
			fmt.Fprintln(a.out, "  "+display.Printable(line))
		}
	}
	for _, line := range lines {
		fmt.Fprintf(a.out, "  %s  %s\n", line.At.UTC().Format(time.TimeOnly), display.Printable(line.Text))
	}
	if len(runs.Items) == 0 {
		return nil
	}
	fmt.Fprintln(a.out)
	var cells [][]string
	for _, run := range runs.Items {
		cells = append(cells, []string{strconv.Itoa(run.Attempt), run.Outcome, display.Ago(run.EndedAt, now), run.Duration.String(), run.Worker, display.Short(run.Error, 60)})
	}
	return a.table([]string{"RUN", "OUTCOME", "ENDED", "TOOK", "WORKER", "ERROR"}, cells)
}

type runView struct {
	Attempt    int       `json:"attempt"`
	Outcome    string    `json:"outcome"`
	Worker     string    `json:"worker"`
	StartedAt  time.Time `json:"started_at"`
	EndedAt    time.Time `json:"ended_at"`
	DurationMS int64     `json:"duration_ms"`
	WaitMS     int64     `json:"wait_ms"`
	Error      string    `json:"error,omitempty"`
}

func runViews(runs []jobs.RunRecord) []runView {
	views := make([]runView, len(runs))
	for i, r := range runs {
		views[i] = runView{r.Attempt, r.Outcome, r.Worker, r.StartedAt.UTC(), r.EndedAt.UTC(), r.Duration.Milliseconds(), r.Wait.Milliseconds(), r.Error}
	}
	return views
}

func (a *commandLine) jobsCancelCommand() *cobra.Command {
	var f filterFlags
	var yes bool
	c := &cobra.Command{
		Use:     "cancel [ID…]",
		Short:   "Cancel waiting and running jobs",
		Long:    "Cancels jobs: waiting ones leave the table, running ones are told to stop and end as cancelled.",
		Example: "  cmsjobs jobs cancel 42 43\n  cmsjobs jobs cancel --type mail.send --queue default --yes",
		RunE: func(c *cobra.Command, ids []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				f.statuses = []string{"queued", "processing"}
				return a.change(ctx, r, ids, f, yes, "cancel", r.History.Cancel)
			})
		},
	}
	f.add(c, false)
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask; needed with a filter that chooses many")
	return c
}

func (a *commandLine) jobsRetryCommand() *cobra.Command {
	c := a.failedRetryCommand()
	c.Short = "Put failed jobs back into their queues (as failed retry)"
	c.Example = strings.ReplaceAll(c.Example, "failed retry", "jobs retry")
	return c
}

// changer is how the store changes jobs: at most limit of those that a filter
// chooses, oldest first.
type changer func(ctx context.Context, f jobs.Filter, limit int) (int64, error)

// chunk is how many jobs one step changes: each step is one short transaction.
const chunk = 500

// change changes the jobs with the given ids, or all that the filter chooses,
// in steps, so that any number of them needs the same memory.
func (a *commandLine) change(ctx context.Context, r *app.Services, ids []string, f filterFlags, yes bool, verb string, do changer) error {
	filter, err := f.filter(a.Now())
	if err != nil {
		return err
	}
	if len(ids) > 0 {
		return a.changeEach(ctx, r, ids, filter, verb, do)
	}
	bare := f
	bare.statuses = nil
	if bare.empty() && !yes {
		return app.Usagef("name the jobs to %s, choose them by a filter, or say --yes for all of them", verb)
	}
	total, err := r.History.Count(ctx, filter)
	if err != nil {
		return err
	}
	if total == 0 && !bare.empty() {
		return fmt.Errorf("no job to %s fits the filter: %w", verb, jobs.ErrNotFound)
	}
	if !yes {
		return app.Usagef("this would %s %s; say --yes to do it", verb, display.Plural(int(total), "job", "jobs"))
	}
	n, err := a.changeAll(ctx, filter, total, verb, do)
	return errors.Join(err, a.changed(verb, n))
}

func (a *commandLine) changeAll(ctx context.Context, filter jobs.Filter, total int64, verb string, do changer) (int64, error) {
	set, end := a.progress(total, verb)
	defer end()
	var done int64
	// Jobs that come while we work (revived ones that fail again) are not meant.
	for done < total {
		n, err := do(ctx, filter, int(min(chunk, total-done)))
		done += n
		set(done)
		if err != nil || n == 0 {
			return done, err
		}
	}
	return done, nil
}

func (a *commandLine) changeEach(ctx context.Context, r *app.Services, ids []string, filter jobs.Filter, verb string, do changer) error {
	var n int64
	var errs []error
	for _, id := range ids {
		j, err := r.History.JobAmong(ctx, id, filter.Statuses)
		if errors.Is(err, jobs.ErrNotFound) { // it is there and in another state: the change says so
			j, err = r.History.Job(ctx, id)
		}
		if err == nil {
			one := filter
			one.UUIDs = []string{j.UUID}
			var changed int64
			if changed, err = do(ctx, one, 1); err == nil && changed == 0 {
				err = fmt.Errorf("the job %s is %s: %w", id, j.Status, jobs.ErrConflict)
			}
			n += changed
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, a.changed(verb, n))...)
}

func (a *commandLine) changed(verb string, n int64) error {
	if a.global.json {
		return a.printJSON(map[string]any{"action": verb, "jobs": n})
	}
	_, err := fmt.Fprintf(a.out, "%s: %d jobs\n", verb, n)
	return err
}

// withServices opens the rooms for one short command.
func (a *commandLine) withServices(c *cobra.Command, do func(context.Context, *app.Services) error) error {
	r, err := a.openConfigured(c.Context())
	if err != nil {
		return err
	}
	defer a.closing(r)
	return do(c.Context(), r)
}
