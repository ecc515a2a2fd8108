package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail"
	"github.com/cmsjobs/cmsjobs/internal/handlers/mail/template"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/timespan"
)

func (a *commandLine) mailCommand() *cobra.Command {
	c := &cobra.Command{Use: "mail", Short: "Show and resend mails, test templates, manage suppressed addresses",
		Example: "  cmsjobs mail test me@example.com\n  cmsjobs mail log --status refused\n  cmsjobs mail preview " +
			"password-reset"}
	c.AddCommand(a.mailLogCommand(), a.mailShowCommand(), a.mailResendCommand(), a.mailTestCommand(),
		a.mailTemplatesCommand(),
		a.mailPreviewCommand(), a.mailBouncesCommand(), a.mailSuppressionsCommand(), a.mailUnknownCommand())
	return c
}

func (a *commandLine) withMail(c *cobra.Command, do func(context.Context, *mail.Handler) error) error {
	return a.withServices(c, func(ctx context.Context, r *app.Services) error { return do(ctx, r.Handlers.Mail) })
}

func (a *commandLine) mailLogCommand() *cobra.Command {
	var f mail.LogFilter
	var p jobs.Page
	var states []string
	c := &cobra.Command{Use: "log", Short: "List mails by recipient, newest first",
		Example: "  cmsjobs mail log --to jo@example.com\n  cmsjobs mail log --status unknown,refused",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			for _, s := range states {
				f.Statuses = append(f.Statuses, mail.Status(s))
			}
			return a.withMail(c, func(ctx context.Context, h *mail.Handler) error {
				list, err := h.Log(ctx, f, p)
				if err != nil {
					return err
				}
				cells := make([][]string, len(list.Items))
				for i, e := range list.Items {
					cells[i] = []string{e.UUID, display.Ago(e.UpdatedAt, a.Now()), e.Recipient, string(e.Status),
						display.Short(e.Subject, 40), display.Short(e.Answer, 60)}
				}
				same := func(e mail.Entry) mail.Entry { return e }
				return a.list(ops.Listed(list, p, same), []string{"JOB", "WHEN", "TO", "STATUS", "SUBJECT", "ANSWER"},
					cells, "No mails.")
			})
		}}
	c.Flags().StringSliceVar(&states, "status", nil, "sending, accepted, deferred, refused, unknown, suppressed, "+
		"expired, bounced")
	c.Flags().StringVar(&f.Recipient, "to", "", "only to this address")
	c.Flags().StringVar(&f.Template, "template", "", "only of this template")
	limitFlag(c, &p.Limit, 50, "how many")
	c.Flags().StringVar(&p.Cursor, "cursor", "", "continue a list where it ended")
	return c
}

func (a *commandLine) mailShowCommand() *cobra.Command {
	return &cobra.Command{Use: "show JOB", Short: "Show every attempt to send one mail",
		Example: "  cmsjobs mail show 2c9e…", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withMail(c, func(ctx context.Context, h *mail.Handler) error {
				tries, err := h.Attempts(ctx, args[0])
				if err != nil {
					return err
				}
				if len(tries) == 0 {
					return fmt.Errorf("no mail was tried by the job %s: %w", args[0], jobs.ErrNotFound)
				}
				cells := make([][]string, len(tries))
				for i, t := range tries {
					cells[i] = []string{t.At.Format(time.RFC3339), t.Recipient, strconv.Itoa(t.Attempt),
						string(t.Status), t.Host, strconv.Itoa(t.Code), display.Short(t.Answer, 80)}
				}
				return a.list(tries, []string{"WHEN", "TO", "ATTEMPT", "STATUS", "SERVER", "CODE", "ANSWER"}, cells, "")
			})
		}}
}

func (a *commandLine) mailResendCommand() *cobra.Command {
	var only []string
	c := &cobra.Command{Use: "resend JOB", Short: "Enqueue a mail again as a new job (needs mail.keep_body)",
		Example: "  cmsjobs mail resend 2c9e… --to jo@example.com", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withMail(c, func(ctx context.Context, h *mail.Handler) error {
				receipt, err := h.Resend(ctx, args[0], only...)
				if err != nil {
					return err
				}
				return a.printReceipt(mail.Send.Name, receipt)
			})
		}}
	c.Flags().StringSliceVar(&only, "to", nil, "only to these of its recipients")
	return c
}

func (a *commandLine) mailTestCommand() *cobra.Command {
	return &cobra.Command{Use: "test ADDRESS", Aliases: []string{"send-test"}, Short: "Send a test mail now, without " +
		"the queue, and show the server's answer", Example: "  cmsjobs mail test me@example.com",
		Args: cobra.ExactArgs(1),
		Long: "Sends one mail at once, without the queue and the limits.\n\nExit codes: 0 the server accepted it · 1 " +
			"it did not",
		RunE: func(c *cobra.Command, args []string) error {
			return a.withMail(c, func(ctx context.Context, h *mail.Handler) error {
				result, err := h.SendTest(ctx, uuid.NewString(), args[0])
				if err != nil {
					return err
				}
				answer := "accepted"
				for _, p := range result.Problems {
					answer = fmt.Sprintf("%s: %d %s", p.Status, p.Code, p.Answer)
				}
				if err := a.list(result, []string{"BY", "SERVER", "MESSAGE-ID", "ANSWER"},
					[][]string{{result.Driver, result.Host, result.MessageID, answer}}, ""); err != nil {
					return err
				}
				if result.Recipients[mail.Accepted] == 0 {
					return errors.New("the test mail was not accepted")
				}
				return nil
			})
		}}
}

var templateOrigins = map[string]string{template.FromUs: "cmsjobs", template.FromFolder: "mail.templates",
	template.FromCMS: "the CMS"}

func (a *commandLine) mailTemplatesCommand() *cobra.Command {
	return &cobra.Command{Use: "templates", Short: "List the templates: built-in, from mail.templates, and the CMS's",
		Example: "  cmsjobs mail templates", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withMail(c, func(_ context.Context, h *mail.Handler) error {
				list, err := h.TemplateList()
				if err != nil {
					return err
				}
				cells := make([][]string, len(list))
				for i, t := range list {
					cells[i] = []string{t.Name, templateOrigins[t.Origin], strings.Join(t.Locales, ", ")}
				}
				return a.list(list, []string{"TEMPLATE", "FROM", "LOCALES"}, cells, "")
			})
		}}
}

func (a *commandLine) mailPreviewCommand() *cobra.Command {
	var locale string
	var html bool
	c := &cobra.Command{Use: "preview TEMPLATE", Short: "Render a template with its example, as it would be sent now",
		Example: "  cmsjobs mail preview password-reset --html > mail.html", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withMail(c, func(ctx context.Context, h *mail.Handler) error {
				content, err := h.Preview(ctx, args[0], locale, nil)
				switch {
				case err != nil:
					return err
				case a.global.json:
					return a.printJSON(map[string]string{"subject": content.Subject, "html": content.HTML,
						"text": content.Text})
				case html:
					_, err = fmt.Fprintln(a.out, content.HTML)
				default:
					_, err = fmt.Fprintf(a.out, "Subject: %s\n\n%s\n", content.Subject, content.Text)
				}
				return err
			})
		}}
	c.Flags().StringVar(&locale, "locale", "", "language, for example vi")
	c.Flags().BoolVar(&html, "html", false, "the HTML part")
	return c
}

func (a *commandLine) mailBouncesCommand() *cobra.Command {
	return &cobra.Command{Use: "bounces FILE", Short: "Read delivery reports (one message, or an mbox; - is standard " +
		"input)", Example: "  cmsjobs mail bounces /var/mail/bounces\n  cmsjobs mail bounces - < report.eml",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			in := a.in
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			return a.withMail(c, func(ctx context.Context, h *mail.Handler) error {
				taken, skipped, err := h.ImportBounces(ctx, in)
				if err != nil {
					return err
				}
				return a.list(map[string]int{"taken": taken, "skipped": skipped},
					[]string{"BOUNCES", "OTHER MESSAGES"}, [][]string{{strconv.Itoa(taken), strconv.Itoa(skipped)}}, "")
			})
		}}
}

func (a *commandLine) mailSuppressionsCommand() *cobra.Command {
	c := &cobra.Command{Use: "suppressions", Short: "List and change the addresses that get no mail",
		Example: "  cmsjobs mail suppressions list\n  cmsjobs mail suppressions remove jo@example.com"}
	var after, reason, expires string
	var limit int
	list := &cobra.Command{Use: "list", Short: "List suppressed addresses",
		Example: "  cmsjobs mail suppressions list", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withMail(c, func(ctx context.Context, h *mail.Handler) error {
				all, err := h.Suppressions(ctx, after, limit)
				if err != nil {
					return err
				}
				cells := make([][]string, len(all))
				for i, s := range all {
					until := "for ever"
					if !s.ExpiresAt.IsZero() {
						until = display.Ago(s.ExpiresAt, a.Now())
					}
					cells[i] = []string{s.Recipient, s.Reason, display.Ago(s.CreatedAt, a.Now()), until,
						display.Short(s.Detail, 60)}
				}
				return a.list(all, []string{"ADDRESS", "REASON", "SINCE", "ENDS", "DETAIL"}, cells,
					"Everybody gets mail.")
			})
		}}
	list.Flags().StringVar(&after, "after", "", "continue after this address")
	limitFlag(list, &limit, 100, "how many")
	add := &cobra.Command{Use: "add ADDRESS", Short: "Suppress an address", Example: "  cmsjobs mail suppressions " +
		"add jo@example.com --reason 'asked us'", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var until time.Time
			if expires != "" {
				d, err := timespan.Parse(expires)
				if err != nil {
					return app.UsageError{Err: fmt.Errorf("--expires: %w", err)}
				}
				until = a.Now().Add(d)
			}
			return a.withMail(c, func(ctx context.Context, h *mail.Handler) error {
				if err := h.Suppress(ctx, args[0], mail.Manual, reason, until); err != nil {
					return app.UsageError{Err: err}
				}
				return a.list(map[string]string{"added": args[0]}, []string{"ADDED"}, [][]string{{args[0]}}, "")
			})
		}}
	add.Flags().StringVar(&reason, "reason", "by hand", "why")
	add.Flags().StringVar(&expires, "expires", "", "ends after so long, for example 30d (default: never)")
	remove := &cobra.Command{Use: "remove ADDRESS", Short: "Remove an address from the suppressions",
		Example: "  cmsjobs mail suppressions remove jo@example.com", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withMail(c, func(ctx context.Context, h *mail.Handler) error {
				if err := (app.WebMail{Handler: h}).Unsuppress(ctx, strings.TrimSpace(args[0])); err != nil {
					return err
				}
				return a.list(map[string]string{"removed": args[0]}, []string{"REMOVED"}, [][]string{{args[0]}}, "")
			})
		}}
	c.AddCommand(list, add, remove)
	return c
}

func (a *commandLine) mailUnknownCommand() *cobra.Command {
	return &cobra.Command{Use: "unknown JOB", Short: "Let a job send again to recipients whose delivery is unknown",
		Example: "  cmsjobs mail unknown 2c9e… && cmsjobs failed retry 2c9e…", Args: cobra.ExactArgs(1),
		Long: "A connection that died after the text was sent leaves it unknown whether the mail arrived. This lets " +
			"the job's\nnext run send it; a recipient may then get it twice. Retry the failed job afterwards.",
		RunE: func(c *cobra.Command, args []string) error {
			return a.withMail(c, func(ctx context.Context, h *mail.Handler) error {
				n, err := h.SendUnknown(ctx, args[0])
				if err != nil {
					return err
				}
				return a.list(map[string]int{"recipients": n}, []string{"RECIPIENTS"}, [][]string{{strconv.Itoa(n)}},
					"")
			})
		}}
}
