package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
)

func (a *commandLine) jobsCancelCommand() *cobra.Command {
	return a.changes(&cobra.Command{
		Use: "cancel [ID…]", ValidArgsFunction: a.completeJobs(jobs.StatusQueued, jobs.StatusProcessing),
		Short: "Cancel waiting and running jobs",
		Long: `Cancels jobs: waiting ones leave the table, running ones are asked to stop and end as cancelled.
A filter chooses waiting jobs; --status processing chooses running ones, --status
queued,processing both.`,
		Example: "  cmsjobs jobs cancel 42 43\n  cmsjobs jobs cancel --type mail.send --queue default --yes",
	}, ops.Cancel, true)
}

// changes makes a command do an action with the jobs that its arguments or flags
// choose.
func (a *commandLine) changes(c *cobra.Command, action ops.Action, withStatus bool) *cobra.Command {
	var f ops.Filter
	var yes bool
	c.RunE = func(c *cobra.Command, ids []string) error {
		return a.withServices(c, func(ctx context.Context, r *app.Services) error {
			return a.change(ctx, r, action, ids, f, yes)
		})
	}
	filterFlags(c, &f, withStatus)
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask; needed with a filter")
	return c
}

func (a *commandLine) jobsRetryCommand() *cobra.Command {
	c := a.failedRetryCommand()
	c.Short = "Put failed jobs back into their queues (as failed retry)"
	c.Example = strings.ReplaceAll(c.Example, "failed retry", "jobs retry")
	return c
}

// change does an action with the jobs of the given ids, or with all that the
// filter chooses.
func (a *commandLine) change(ctx context.Context, r *app.Services, action ops.Action, ids []string, f ops.Filter,
	yes bool) error {
	if len(ids) > 0 {
		if !f.Empty() {
			return app.Usagef("name the jobs to %s or choose them by a filter, not both", action)
		}
		return a.changeEach(ctx, r, action, ids)
	}
	parsed, err := a.filter(f)
	if err != nil {
		return err
	}
	if f.Empty() && !yes {
		return app.Usagef("name the jobs to %s, choose them by a filter, or say --yes for all of them", action)
	}
	filter, none := ops.Selected(action, parsed)
	var total int64
	if !none {
		if total, err = r.History.Count(ctx, filter); err != nil {
			return err
		}
	}
	if total == 0 && !f.Empty() {
		return fmt.Errorf("no job to %s fits the filter: %w", action, jobs.ErrNotFound)
	}
	if !yes {
		return app.Usagef("this would %s %s; say --yes to do it", action, display.Plural(int(total), "job", "jobs"))
	}
	set, end := a.progress(total, string(action))
	done, err := r.Actions().Many(ctx, action, filter, total, set)
	end()
	return errors.Join(err, a.changed(action, total, done))
}

func (a *commandLine) changeEach(ctx context.Context, r *app.Services, action ops.Action, ids []string) error {
	var done int64
	var errs []error
	for _, id := range ids {
		j, err := r.History.JobAmong(ctx, id, action.Statuses())
		if errors.Is(err, jobs.ErrNotFound) { // it is there and in another status: the action says so
			j, err = r.History.Job(ctx, id)
		}
		if err == nil {
			if err = r.Actions().One(ctx, action, j); err == nil {
				done++
			} else {
				err = fmt.Errorf("job %s: %w", id, err)
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, a.changed(action, int64(len(ids)), done))...)
}

func (a *commandLine) changed(action ops.Action, count, done int64) error {
	if a.global.json {
		return a.printJSON(ops.Changed{Count: count, Changed: done})
	}
	_, err := fmt.Fprint(a.out, display.Sprintf("%s: %d {job|jobs}\n", action, done))
	return err
}
