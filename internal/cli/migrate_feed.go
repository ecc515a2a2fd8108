package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/feed"
)

func (a *commandLine) migrateFeedCommand() *cobra.Command {
	var drop, show bool
	c := &cobra.Command{
		Use:   "feed",
		Short: "Make the trigger by which PostgreSQL notifies of new jobs",
		Long: "Adds a trigger to the CMS's jobs table on PostgreSQL: each INSERT then notifies the service, which " +
			"runs the\njob within milliseconds. The other databases need none.",
		Example: "  cmsjobs migrate feed --show\n  cmsjobs migrate feed",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				if database.Of(r.DB).Changes != database.Notifications {
					return app.Usagef("only PostgreSQL has such a trigger; this database's own feed needs none " +
						"(cmsjobs doctor says what it needs)")
				}
				table, plain := r.JobsTable()
				statements, sentence := feed.Trigger(table),
					"The trigger is there. Running workers use it within 10 minutes, or after cmsjobs restart."
				if drop {
					statements, sentence = feed.DropTrigger(table), "The trigger is removed."
				}
				if show {
					return a.done(feed.Script(statements))
				}
				tx, err := r.DB.BeginTxx(ctx, nil)
				if err != nil {
					return app.DatabaseError{Err: err}
				}
				defer func() { _ = tx.Rollback() }() // does nothing after the commit
				for _, statement := range statements {
					if _, err := tx.ExecContext(ctx, statement); err != nil {
						return app.DatabaseError{Err: database.Explain("changing the trigger of "+plain, err)}
					}
				}
				if err := tx.Commit(); err != nil {
					return app.DatabaseError{Err: err}
				}
				return a.done(sentence)
			})
		},
	}
	c.Flags().BoolVar(&show, "show", false, "only print the statements")
	c.Flags().BoolVar(&drop, "drop", false, "remove it again")
	return c
}
