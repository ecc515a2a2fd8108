package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/timespan"
)

func (a *commandLine) failedCommand() *cobra.Command {
	c := &cobra.Command{Use: "failed", Short: "List, retry and delete failed jobs",
		Example: "  cmsjobs failed groups\n  cmsjobs failed retry --type mail.send --yes"}
	c.AddCommand(a.failedListCommand(), a.failedGroupsCommand(), a.failedShowCommand(), a.failedRetryCommand(),
		a.failedDeleteCommand(), a.failedFlushCommand(), a.failedPruneCommand())
	return a.unmaskedFlag(c)
}

func (a *commandLine) failedListCommand() *cobra.Command {
	return a.lists(&cobra.Command{
		Use:     "list",
		Short:   "List failed jobs, PHP's own among them, newest first",
		Example: "  cmsjobs failed list\n  cmsjobs failed list --text 'connection refused' --since 2d",
		Args:    cobra.NoArgs,
	}, string(jobs.StatusFailed))
}

func (a *commandLine) failedShowCommand() *cobra.Command {
	c := a.jobsShowCommand(jobs.StatusFailed)
	c.Short = "Show one failed job (as jobs show)"
	c.Example = "  cmsjobs failed show 7"
	return c
}

func (a *commandLine) failedGroupsCommand() *cobra.Command {
	var f ops.Filter
	c := &cobra.Command{
		Use:   "groups",
		Short: "Group failed jobs by their cause",
		Long: "Groups failed jobs by cause: messages that differ in numbers, ids and quoted parts only are one " +
			"cause.\nIts fingerprint chooses them: failed retry --cause FINGERPRINT --yes",
		Example: "  cmsjobs failed groups",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			filter, err := a.filter(f)
			if err != nil {
				return err
			}
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				return a.listGroups(ctx, r, filter)
			})
		},
	}
	filterFlags(c, &f, false)
	return c
}

func (a *commandLine) listGroups(ctx context.Context, r *app.Services, f jobs.Filter) error {
	groups, err := r.History.Groups(ctx, f)
	if err != nil {
		return err
	}
	v, err := r.Viewer(a.unmasked)
	if err != nil {
		return err
	}
	views := ops.ItemsOf(groups, v.FailureGroup)
	now := a.Now()
	cells := ops.Each(views.Items, func(g ops.FailureGroupView) []string {
		return []string{strconv.FormatInt(g.Count, 10), g.Type, display.Ago(g.FirstSeen, now),
			display.Ago(g.LastSeen, now), g.Cause, display.Short(g.Message, 70)}
	})
	return a.list(views, []string{"JOBS", "TYPE", "FIRST", "LAST", "CAUSE", "MESSAGE"}, cells, "No failed jobs.")
}

func (a *commandLine) failedRetryCommand() *cobra.Command {
	var f ops.Filter
	var yes bool
	var payload string
	c := &cobra.Command{
		Use:   "retry [ID…|all]",
		Short: "Put failed jobs back into their queues",
		Long: `Puts failed jobs back into their queues: due now, no attempts counted, under their own UUID.
PHP's own failed jobs go back as they were, for PHP's worker. Any number of them is taken in
steps of bounded memory.`,
		Example: "  cmsjobs failed retry 7\n  cmsjobs failed retry all\n  cmsjobs failed retry --type mail.send " +
			"--since 2h --yes\n  cmsjobs failed retry 7 --payload " +
			"'{\"to\":\"right@example.com\",\"subject\":\"Hello\",\"body\":\"Hi\"}'",
		ValidArgsFunction: a.completeJobs(jobs.StatusFailed),
		RunE: func(c *cobra.Command, ids []string) error {
			if len(ids) == 1 && ids[0] == "all" {
				ids, yes = nil, true
			}
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				if payload != "" {
					return a.retryEdited(ctx, r, ids, payload)
				}
				return a.change(ctx, r, ops.Retry, ids, f, yes)
			})
		},
	}
	filterFlags(c, &f, false)
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask; needed with a filter")
	c.Flags().StringVar(&payload, "payload", "", "give the one job another payload (JSON, -, @FILE)")
	return c
}

func (a *commandLine) retryEdited(ctx context.Context, r *app.Services, ids []string, payload string) error {
	if len(ids) != 1 {
		return app.Usagef("--payload is for one job: name it")
	}
	data, err := a.payload([]string{payload})
	if err != nil {
		return err
	}
	record, err := r.History.JobAmong(ctx, ids[0], []jobs.Status{jobs.StatusFailed})
	if err != nil {
		return err
	}
	given, err := r.Orders.Give(ctx, r.Registry, jobs.Spec{Type: record.Type, Data: data})
	if err != nil {
		return err
	}
	receipt, err := r.History.RetryEdited(ctx, ids[0], given[0].Data)
	if err != nil {
		return err
	}
	return a.receipt(jobs.Spec{Type: record.Type}, receipt)
}

func (a *commandLine) failedDeleteCommand() *cobra.Command {
	return a.changes(&cobra.Command{
		Use:               "delete [ID…]",
		Short:             "Delete failed jobs",
		ValidArgsFunction: a.completeJobs(jobs.StatusFailed),
		Example:           "  cmsjobs failed delete 7\n  cmsjobs failed delete --type cmsjobs.probe --yes",
	}, ops.Delete, false)
}

func (a *commandLine) failedFlushCommand() *cobra.Command {
	var hours int
	c := &cobra.Command{
		Use:   "flush",
		Short: "Delete all failed jobs, or all that are older",
		Long: "Deletes all failed jobs, PHP's own among them, as Laravel's queue:flush does. Nothing is exported: " +
			"see failed prune.",
		Example: "  cmsjobs failed flush --hours 48",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var f ops.Filter
			if hours > 0 {
				f.Until = fmt.Sprintf("%dh", hours)
			}
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				return a.change(ctx, r, ops.Delete, nil, f, true)
			})
		},
	}
	c.Flags().IntVar(&hours, "hours", 0, "only what failed longer ago than so many hours")
	return c
}

func (a *commandLine) failedPruneCommand() *cobra.Command {
	var older, export string
	var hours int
	var dry bool
	c := &cobra.Command{
		Use:   "prune",
		Short: "Export old failed jobs to a file, then delete them",
		Long: "Writes failed jobs that are older to a file of JSON lines, syncs it to disk and only then deletes " +
			"them.",
		Example: "  cmsjobs failed prune --older 30d\n  cmsjobs failed prune --older 7d --dry-run",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				age := r.Config.Queue.KeepFailed
				if hours > 0 {
					age = time.Duration(hours) * time.Hour
				}
				if older != "" {
					var err error
					if age, err = timespan.Parse(older); err != nil {
						return app.UsageError{Err: err}
					}
				}
				if age <= 0 {
					return app.Usagef("failed jobs are kept for ever (queue.keep_failed is 0): say --older 30d")
				}
				return a.prune(ctx, r, a.Now().Add(-age), export, dry)
			})
		},
	}
	c.Flags().StringVar(&older, "older", "", "how old (default: queue.keep_failed, 30d)")
	c.Flags().IntVar(&hours, "hours", 0, "the same in hours, as Laravel says it")
	c.Flags().StringVar(&export, "export", "", "the file (default: a new one in queue.export_dir)")
	c.Flags().BoolVar(&dry, "dry-run", false, "only count")
	c.MarkFlagsMutuallyExclusive("older", "hours")
	return c
}

func (a *commandLine) prune(ctx context.Context, r *app.Services, before time.Time, path string, dry bool) error {
	f := jobs.Filter{Statuses: []jobs.Status{jobs.StatusFailed}, Until: before}
	total, err := r.History.Count(ctx, f)
	if err != nil {
		return err
	}
	if dry || total == 0 {
		return a.pruned(map[string]any{"would_delete": total, "before": before.UTC()},
			wouldPrune(total, before))
	}
	if path == "" {
		if path, err = r.ExportFile(a.Now()); err != nil {
			return err
		}
	}
	set, end := a.progress(total, "prune")
	n, err := r.PruneTo(ctx, path, before, set)
	end()
	if err != nil {
		return err
	}
	return a.pruned(map[string]any{"deleted": n, "export": path}, fmt.Sprintf("%d failed jobs were written to %s and "+
		"deleted.", n, path))
}

func wouldPrune(total int64, before time.Time) string {
	than := before.UTC().Format(time.DateTime) + " UTC"
	if total == 0 {
		return "No failed jobs are older than " + than + "."
	}
	return display.Sprintf("%d failed {job|jobs} older than %s would be written to a file and deleted.", total, than)
}

func (a *commandLine) pruned(v any, sentence string) error {
	if a.global.json {
		return a.printJSON(v)
	}
	_, err := fmt.Fprintln(a.out, sentence)
	return err
}
