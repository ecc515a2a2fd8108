package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/handlers/webhook"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/timespan"
)

func (a *commandLine) webhookCommand() *cobra.Command {
	c := &cobra.Command{Use: "webhook", Short: "Manage webhooks and show their deliveries",
		Example: "  cmsjobs webhook add https://shop.example/hook --events sitemap.updated,job.failed\n  cmsjobs " +
			"webhook deliveries"}
	done := func(word string, do func(context.Context, *webhook.Handler, int64) error) func(context.Context,
		*webhook.Handler, int64) error {
		return func(ctx context.Context, h *webhook.Handler, id int64) error {
			if err := do(ctx, h, id); err != nil {
				return err
			}
			return a.list(map[string]any{word: id}, []string{strings.ToUpper(word)},
				[][]string{{strconv.FormatInt(id, 10)}}, "")
		}
	}
	var reason string
	disable := a.webhookChange("disable ID", "Stop sending to a receiver",
		done("disabled", func(ctx context.Context, h *webhook.Handler, id int64) error {
			return h.Disable(ctx, id, reason)
		}))
	disable.Flags().StringVar(&reason, "reason", "switched off by hand", "shown in the list")
	c.AddCommand(a.webhookListCommand(), a.webhookAddCommand(), a.webhookRotateCommand(), disable,
		a.webhookChange("enable ID", "Send to a receiver again",
			done("enabled", func(ctx context.Context, h *webhook.Handler, id int64) error {
				return h.Enable(ctx, id)
			})),
		a.webhookChange("remove ID", "Delete a receiver; the log of deliveries stays",
			done("removed", func(ctx context.Context, h *webhook.Handler, id int64) error {
				return h.Remove(ctx, id)
			})),
		a.webhookDeliveriesCommand(),
		a.webhookChange("redeliver DELIVERY", "Send a logged message again, under its first id",
			a.receiptOf(func(ctx context.Context, h *webhook.Handler, id int64) (jobs.Receipt, error) {
				return h.Redeliver(ctx, id)
			})),
		a.webhookChange("test ID", "Send webhook.test to a receiver",
			a.receiptOf(func(ctx context.Context, h *webhook.Handler, id int64) (jobs.Receipt, error) {
				return h.SendTest(ctx, id)
			})),
		&cobra.Command{Use: "secret", Short: "Create a secret for webhook.secret or mail.bounce_secret",
			Example: "  cmsjobs webhook secret", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error {
				secret := webhook.NewSecret()
				return a.list(map[string]any{"secret": secret}, []string{"SECRET"}, [][]string{{secret}}, "")
			}})
	return c
}

// receiptOf prints what was enqueued.
func (a *commandLine) receiptOf(do func(context.Context, *webhook.Handler, int64) (jobs.Receipt, error)) func(
	context.Context, *webhook.Handler, int64) error {
	return func(ctx context.Context, h *webhook.Handler, id int64) error {
		receipt, err := do(ctx, h, id)
		if err != nil {
			return err
		}
		return a.printReceipt(webhook.Deliver.Name, receipt)
	}
}

func (a *commandLine) printReceipt(jobType string, r jobs.Receipt) error {
	return a.list(ops.EnqueuedView(jobs.Spec{Type: jobType}, r, a.Now()), []string{"ENQUEUED"}, [][]string{{r.UUID}},
		"")
}

func (a *commandLine) webhookChange(use, short string, do func(context.Context, *webhook.Handler,
	int64) error) *cobra.Command {
	word, _, _ := strings.Cut(use, " ")
	return &cobra.Command{Use: use, Short: short, Example: "  cmsjobs webhook " + word + " 3", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return app.Usagef("%q is no number; see cmsjobs webhook list", args[0])
			}
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				return do(ctx, r.Handlers.Webhook, id)
			})
		}}
}

func (a *commandLine) webhookListCommand() *cobra.Command {
	return &cobra.Command{Use: "list", Short: "List the receivers", Example: "  cmsjobs webhook list --json",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				list, err := app.WebWebhooks{Handler: r.Handlers.Webhook}.Webhooks(ctx)
				if err != nil {
					return err
				}
				cells := make([][]string, len(list))
				for i, w := range list {
					state := "on"
					if !w.Enabled {
						state = "off"
					}
					cells[i] = []string{w.ID, state, w.URL, strings.Join(w.Events, ","), w.Note}
				}
				return a.list(list, []string{"ID", "STATUS", "URL", "EVENTS", "NAME"}, cells, "No receivers.")
			})
		}}
}

func (a *commandLine) webhookAddCommand() *cobra.Command {
	var events []string
	var name string
	c := &cobra.Command{Use: "add URL", Short: "Add a receiver and print its secret once", Args: cobra.ExactArgs(1),
		Long: "Adds a receiver. Its secret is printed once; messages are signed as standardwebhooks.com " +
			"says.\nEvents: sitemap.updated, job.failed, backup.completed, content.published,\ncontent.changed, or " +
			"AREA.*, or * for all.",
		Example: "  cmsjobs webhook add https://shop.example/hook --events 'backup.*,job.failed' --name shop",
		RunE: func(c *cobra.Command, args []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				s, secret, err := r.Handlers.Webhook.Create(ctx, name, args[0], events)
				if err != nil {
					return app.UsageError{Err: err}
				}
				return a.list(map[string]any{"id": s.ID, "secret": secret}, []string{"ID", "SECRET (not shown again)"},
					[][]string{{strconv.FormatInt(s.ID, 10), secret}}, "")
			})
		}}
	c.Flags().StringSliceVar(&events, "events", []string{"*"}, "what it is notified of")
	c.Flags().StringVar(&name, "name", "", "for people")
	return c
}

func (a *commandLine) webhookRotateCommand() *cobra.Command {
	var overlap string
	c := a.webhookChange("rotate ID", "Make a new secret and print it once", nil)
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil {
			return app.Usagef("%q is no number; see cmsjobs webhook list", args[0])
		}
		both, err := timespan.Parse(overlap)
		if err != nil {
			return app.UsageError{Err: fmt.Errorf("--overlap: %w", err)}
		}
		return a.withServices(c, func(ctx context.Context, r *app.Services) error {
			secret, err := r.Handlers.Webhook.Rotate(ctx, id, both)
			if err != nil {
				return err
			}
			return a.list(map[string]any{"id": id, "secret": secret}, []string{"ID", "SECRET (not shown again)"},
				[][]string{{args[0], secret}}, "")
		})
	}
	c.Flags().StringVar(&overlap, "overlap", "24h", "how long the old secret still signs, too")
	return c
}

// deliveryStatus is the status of an answer; a delivery that got none has 0.
func deliveryStatus(status int) string {
	if status == 0 {
		return "no answer"
	}
	return strconv.Itoa(status)
}

func (a *commandLine) webhookDeliveriesCommand() *cobra.Command {
	var id int64
	var p jobs.Page
	c := &cobra.Command{Use: "deliveries", Short: "List attempts to deliver, newest first",
		Example: "  cmsjobs webhook deliveries --webhook 3", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				list, err := r.Handlers.Webhook.Deliveries(ctx, id, p)
				if err != nil {
					return err
				}
				cells := make([][]string, len(list.Items))
				for i, d := range list.Items {
					cells[i] = []string{strconv.FormatInt(d.ID, 10), display.Ago(d.At, a.Now()), d.Event,
						display.Short(d.URL, 50), deliveryStatus(d.Status), strconv.Itoa(d.Attempt),
						display.Short(d.Error, 60)}
				}
				same := func(d webhook.Delivery) webhook.Delivery { return d }
				return a.list(ops.Listed(list, p, same), []string{"ID", "WHEN", "EVENT", "URL", "STATUS", "ATTEMPT",
					"ERROR"},
					cells,
					"No deliveries.")
			})
		}}
	c.Flags().Int64Var(&id, "webhook", 0, "only of this receiver")
	limitFlag(c, &p.Limit, 50, "how many")
	c.Flags().StringVar(&p.Cursor, "cursor", "", "continue a list where it ended")
	return c
}
