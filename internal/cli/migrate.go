package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/feed"
	"github.com/cmsjobs/cmsjobs/internal/jobs/tables"
	"github.com/cmsjobs/cmsjobs/migrations"
)

func (a *commandLine) migrateCommand() *cobra.Command {
	c := &cobra.Command{Use: "migrate", Short: "Create, list and remove the cmsjobs_* tables",
		Example: "  cmsjobs migrate status\n  cmsjobs migrate up",
		Long:    "Creates the service's tables, all named cmsjobs_*. Tables of the CMS are never changed."}
	c.AddCommand(a.migrateUpCommand(), a.migrateStatusCommand(), a.migrateDownCommand(), a.migrateIndexCommand(),
		a.migrateFeedCommand())
	return c
}

// withDatabases opens databases only: tables may be missing.
func (a *commandLine) withDatabases(c *cobra.Command, do func(context.Context, *app.Services) error) error {
	l, err := a.load()
	if err != nil {
		return err
	}
	r := &app.Services{Config: l, Log: a.Logger(l.Log), Now: a.Now}
	defer a.closing(r)
	if err := r.OpenDatabases(c.Context()); err != nil {
		return err
	}
	return do(c.Context(), r)
}

func (a *commandLine) migrateUpCommand() *cobra.Command {
	var create bool
	c := &cobra.Command{
		Use:   "up",
		Short: "Create missing cmsjobs_* tables",
		Long: "Creates missing tables; running it twice is harmless. --create-jobs also creates jobs " +
			"and\nfailed_jobs where the CMS has none, in the layout of database.layout.",
		Example: "  cmsjobs migrate up\n  cmsjobs --set database.layout=extended migrate up --create-jobs",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withDatabases(c, func(ctx context.Context, r *app.Services) error {
				if err := r.MakeTables(ctx); err != nil {
					return app.DatabaseError{Err: err}
				}
				if !create {
					return a.done("Our tables are up to date.")
				}
				if name := r.Config.Database.JobsTable; name != "jobs" {
					return app.Usagef("the CMS names its jobs table %s (DB_QUEUE_TABLE): make it there, with php "+
						"artisan queue:table and php artisan migrate", name)
				}
				made, err := tables.CreateTables(ctx, r.DB, layoutOf(r.Config.Database), r.Config.Database.Prefix)
				if err != nil {
					return app.DatabaseError{Err: err}
				}
				if len(made) == 0 {
					return a.done("Our tables are up to date; jobs and failed_jobs are there already.")
				}
				return a.done("Our tables are up to date; made " + strings.Join(made, ", ") + ".")
			})
		},
	}
	c.Flags().BoolVar(&create, "create-jobs", false, "create jobs and failed_jobs where there are none")
	return c
}

func layoutOf(d config.Database) tables.Layout {
	if d.Layout == "extended" {
		return tables.Extended
	}
	return tables.Stock
}

func (a *commandLine) done(sentence string) error {
	if a.global.json {
		return a.printJSON(map[string]any{"ok": true, "message": sentence})
	}
	_, err := fmt.Fprintln(a.out, sentence)
	return err
}

func (a *commandLine) migrateStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "List the migrations and which of them ran",
		Example: "  cmsjobs migrate status --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withDatabases(c, func(ctx context.Context, r *app.Services) error {
				p, err := migrations.Provider(r.OwnDB)
				if err != nil {
					return err
				}
				list, err := p.Status(ctx)
				if err != nil {
					return app.DatabaseError{Err: fmt.Errorf("reading which migrations ran: %w", err)}
				}
				return a.listMigrations(list)
			})
		},
	}
}

func (a *commandLine) listMigrations(list []*goose.MigrationStatus) error {
	type view struct {
		Version int64  `json:"version"`
		Name    string `json:"name"`
		Status  string `json:"status"`
	}
	views := make([]view, len(list))
	cells := make([][]string, len(list))
	for i, m := range list {
		views[i] = view{m.Source.Version, m.Source.Path, string(m.State)}
		cells[i] = []string{count(m.Source.Version), m.Source.Path, string(m.State)}
	}
	return a.list(views, []string{"VERSION", "FILE", "STATUS"}, cells, "No migrations.")
}

func (a *commandLine) migrateDownCommand() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "down",
		Short: "Remove all cmsjobs_* tables, with everything in them",
		Long: "Removes all cmsjobs_* tables with the history, the mail log and everything else in them. The CMS's " +
			"tables stay.",
		Example: "  cmsjobs migrate down --yes",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !yes {
				return app.Usagef("this removes all cmsjobs_* tables and what is in them; say --yes to do it")
			}
			return a.withDatabases(c, func(ctx context.Context, r *app.Services) error {
				if err := migrations.Down(ctx, r.OwnDB); err != nil {
					return app.DatabaseError{Err: err}
				}
				return a.done("Our tables are removed.")
			})
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do it")
	return c
}

func (a *commandLine) migrateIndexCommand() *cobra.Command {
	var drop, show bool
	c := &cobra.Command{
		Use:   "index",
		Short: "Add the index to the CMS's jobs table that makes claims fast",
		Long: "Adds an index to the CMS's jobs table, the only change offered there. It keeps claims " +
			"fast\nhowever many jobs wait; Laravel's own worker is not slowed by it.",
		Example: "  cmsjobs migrate index --show\n  cmsjobs migrate index",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				offer := r.Store.OfferIndex()
				switch {
				case show && offer == "":
					return a.done("The index is there.")
				case show:
					return a.done(offer)
				case drop:
					if err := r.Store.DropIndex(ctx); err != nil {
						return err
					}
					return a.done("The index is removed.")
				case offer == "":
					return a.done("The index is there already.")
				}
				if err := r.Store.AddIndex(ctx); err != nil {
					return err
				}
				return a.done("The index is added.")
			})
		},
	}
	c.Flags().BoolVar(&show, "show", false, "only print the statement")
	c.Flags().BoolVar(&drop, "drop", false, "remove it again")
	c.MarkFlagsMutuallyExclusive("show", "drop")
	return c
}

func (a *commandLine) migrateFeedCommand() *cobra.Command {
	var drop, show, replication bool
	c := &cobra.Command{
		Use:   "feed",
		Short: "Prepare PostgreSQL to tell of new jobs, and of edits",
		Long: "Adds a trigger to the CMS's jobs table on PostgreSQL: each INSERT then notifies the service, which " +
			"runs the\njob within milliseconds. With --replication it makes publications instead, which need no " +
			"trigger and tell of\nthe CMS's content too; the server's wal_level must be logical. The other databases " +
			"need neither.",
		Example: "  cmsjobs migrate feed --show\n  cmsjobs migrate feed\n  cmsjobs migrate feed --replication",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				if database.Of(r.DB).Changes != database.Notifications {
					return app.Usagef("only PostgreSQL is prepared so; this database's own feed needs nothing of it " +
						"(cmsjobs doctor says what it needs)")
				}
				table, plain := r.JobsTable()
				statements, sentence := feed.Trigger(table),
					"The trigger is there. Running workers use it within 10 minutes, or after cmsjobs restart."
				if drop {
					statements, sentence = feed.DropTrigger(table), "The trigger is removed."
				}
				if replication {
					var err error
					if statements, sentence, err = publications(ctx, r, drop); err != nil {
						return err
					}
				}
				if show {
					return a.done(feed.Script(statements))
				}
				if err := database.InTx(ctx, r.DB, "preparing the change feed of "+plain, func(tx *sqlx.Tx) error {
					for _, statement := range statements {
						if _, err := tx.ExecContext(ctx, statement); err != nil {
							return database.Explain(statement, err)
						}
					}
					return nil
				}); err != nil {
					return app.DatabaseError{Err: err}
				}
				return a.done(sentence)
			})
		},
	}
	c.Flags().BoolVar(&replication, "replication", false, "publications for logical replication, not the trigger")
	c.Flags().BoolVar(&show, "show", false, "only print the statements")
	c.Flags().BoolVar(&drop, "drop", false, "remove it again")
	return c
}

// publications are the statements that make or remove those of logical replication, and
// what is said when they are done.
func publications(ctx context.Context, r *app.Services, drop bool) (statements []string, sentence string, err error) {
	p, err := r.Publications(ctx)
	if err != nil {
		return nil, "", app.DatabaseError{Err: err}
	}
	if drop {
		return p.Drop, "The publications are removed.", nil
	}
	sentence = "The publications are there. Workers use them after cmsjobs restart; cmsjobs doctor says whether the " +
		"server and the account allow it."
	if len(p.Without) > 0 {
		sentence += "\nNot published, as they have no primary key: " + strings.Join(p.Without, ", ") +
			". Edits are looked for as without a feed."
	}
	return p.Make, sentence, nil
}
