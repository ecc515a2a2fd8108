package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
)

// restoreOptions are the flags of "cmsjobs backup restore".
type restoreOptions struct {
	request                       restore.Request
	from, into                    string
	dry, everything, finish, undo bool
	post                          int64
	at                            string
}

func (a *commandLine) backupRestoreCommand() *cobra.Command {
	var o restoreOptions
	c := &cobra.Command{Use: "restore ID", Short: "Restore the database, tables or files of a backup",
		Args: cobra.MaximumNArgs(1),
		Long: `Shows what would change and a confirmation word. Nothing changes without --confirm WORD. Before
that, the whole archive is copied and checked, and a backup of what is there now is made. A
backup that this installation never made (the plan says so), one whose newest verification
failed, and files that a web server could execute (.php, .htaccess …) are restored only with
--trust-unknown, --allow-failed or --allow-executable.

Everything is loaded beside the site and exchanged at once. A restore that was killed leaves the
site as it was or as the backup; doctor says which. --undo removes what it loaded, --finish does
what remains. The next start of the service and the next backup do the nearer of the two.`,
		Example: "  cmsjobs backup restore latest --database --dry-run\n  cmsjobs backup restore latest --files " +
			"--paths 'uploads/news/**' --confirm WORD\n  cmsjobs backup restore latest --database --into " +
			"mysql://user@host/copy\n  cmsjobs backup restore latest --post 12\n  cmsjobs backup restore --at " +
			"'2026-11-21 14:03:00' --into found_again --dry-run",
		RunE: func(c *cobra.Command, args []string) error {
			if o.at != "" {
				return a.restoreMoment(c, o, args)
			}
			return a.runRestore(c, o, args)
		}}
	o.flags(c)
	return c
}

// runRestore does what the flags say.
func (a *commandLine) runRestore(c *cobra.Command, o restoreOptions, args []string) error {
	q := &o.request
	if o.finish || o.undo {
		return a.settleRestore(c, args, o.finish)
	}
	if len(args) == 0 {
		return app.Usagef("name the backup: its id, or latest")
	}
	if o.post > 0 {
		return a.restorePost(c, restore.PostRequest{ID: o.post, Confirm: q.Confirm, TrustUnknown: q.TrustUnknown,
			AllowFailed: q.AllowFailed}, args[0], o.from)
	}
	if o.everything {
		q.Database, q.Files = true, true
	}
	if !q.Database && !q.Files && len(q.Tables) == 0 && len(q.Paths) == 0 {
		return app.Usagef("say what to restore: --everything, --database, --tables, --files or --paths")
	}
	q.Database, q.Files = q.Database || len(q.Tables) > 0, q.Files || len(q.Paths) > 0
	if o.into != "" {
		var err error
		if q.IntoDSN, err = database.DriverDSN(o.into); err != nil {
			return app.UsageError{Err: fmt.Errorf("--into: %w", err)}
		}
		// a SQLite backup is restored into a new file
		if path, isFile := strings.CutPrefix(q.IntoDSN, "file:"); isFile {
			q.IntoDSN = path
		}
	}
	return a.withBackups(c, func(ctx context.Context, h *backup.Handler) error {
		return a.restore(ctx, h, *q, args[0], o.from, o.dry)
	})
}

func (o *restoreOptions) flags(c *cobra.Command) {
	f, q := c.Flags(), &o.request
	f.BoolVar(&o.everything, "everything", false, "the database and all files")
	f.BoolVar(&q.Database, "database", false, "the whole database")
	f.StringSliceVar(&q.Tables, "tables", nil, "only these tables")
	f.BoolVar(&q.Files, "files", false, "all files; those that the backup does not have stay")
	f.StringSliceVar(&q.Paths, "paths", nil, "only files that fit, for example 'uploads/news/**'")
	f.StringVar(&o.into, "into", "", "another database instead of the CMS's; for SQLite sqlite:NEWFILE")
	f.StringVar(&q.IntoFolder, "into-folder", "", "another folder instead of the CMS's")
	f.StringToStringVar(&q.Collations, "collation", nil, "OLD=NEW: a collation that becomes another, for example "+
		"utf8mb4_0900_ai_ci=utf8mb4_unicode_ci")
	f.StringVar(&q.Confirm, "confirm", "", "the word that the dry run names")
	f.BoolVar(&q.SkipSafety, "no-safety", false, "do not back up the present data first")
	f.BoolVar(&q.TrustUnknown, "trust-unknown", false, "restore a backup that this installation never made, or that "+
		"was altered")
	f.BoolVar(&q.AllowExecutable, "allow-executable", false, "restore files that a web server could execute too")
	f.BoolVar(&q.AllowFailed, "allow-failed", false, "restore a backup whose newest verification failed, if its "+
		"archive is still the one that was made")
	f.StringVar(&o.from, "from", "", "the destination to read from")
	f.BoolVar(&o.dry, "dry-run", false, "only show what would change")
	f.Int64Var(&o.post, "post", 0, "only the blog post of this number, with its address, meta data, categories, tags "+
		"and translations")
	c.MarkFlagsMutuallyExclusive("post", "everything")
	c.MarkFlagsMutuallyExclusive("post", "database")
	c.MarkFlagsMutuallyExclusive("post", "files")
	f.StringVar(&o.at, "at", "", "the database as it was at this second, for example '2026-11-21 14:03:00' (the CMS's "+
		"time) or 2026-11-21T14:03:00+01:00; with --into NAME in a new database")
	for _, other := range []string{"everything", "database", "tables", "files", "paths", "post", "collation",
		"into-folder", "trust-unknown", "allow-failed"} {
		c.MarkFlagsMutuallyExclusive("at", other)
	}
	f.BoolVar(&o.finish, "finish", false, "finish a restore that was killed")
	f.BoolVar(&o.undo, "undo", false, "roll back a restore that was killed")
	c.MarkFlagsMutuallyExclusive("finish", "undo")
}

// settleRestore brings a restore that was killed to its end.
func (a *commandLine) settleRestore(c *cobra.Command, args []string, finish bool) error {
	if len(args) > 0 {
		return app.Usagef("--finish and --undo take the restore that did not finish: name no backup")
	}
	how := restore.Undo
	if finish {
		how = restore.Finish
	}
	return a.withBackups(c, func(ctx context.Context, h *backup.Handler) error {
		all, err := h.Settle(ctx, how)
		cells := make([][]string, len(all))
		for i, s := range all {
			end := "as it was before"
			if s.Restored {
				end = "as the backup"
			}
			cells[i] = []string{s.Backup, end, strings.Join(s.Problems, "; ")}
		}
		if all == nil {
			all = []restore.Settled{}
		}
		nothing := "Every restore came to its end."
		if err != nil {
			nothing = ""
		}
		return errors.Join(a.list(all, []string{"BACKUP", "THE SITE IS", "PROBLEMS"}, cells, nothing), err)
	})
}

func (a *commandLine) restore(ctx context.Context, h *backup.Handler, q restore.Request, id, from string,
	dry bool) error {
	var err error
	if q.Backup, err = a.findBackup(ctx, h, catalog.Wanted{ID: id, Destination: from, Database: q.Database,
		Files: q.Files}); err != nil {
		return err
	}
	progress, end := a.backupProgress()
	defer func() { end() }()
	if dry || q.Confirm == "" {
		plan, err := h.Plan(ctx, q, progress)
		end()
		if err != nil {
			return err
		}
		if err := a.printPlan(plan); err != nil || dry && len(plan.Refused) == 0 {
			return err
		}
		if len(plan.Refused) > 0 {
			return fmt.Errorf("nothing was changed: %w", restore.ErrUnfit)
		}
		return app.Usagef("nothing was changed: say it again with --confirm %s", plan.Token)
	}
	done, err := h.Restore(ctx, q, progress)
	end()
	if err != nil {
		return err
	}
	if err := a.summary(done, done.Summary()); err != nil {
		return err
	}
	if len(done.Problems) > 0 {
		return errors.New("what was restored differs from what was saved")
	}
	return nil
}

func (a *commandLine) printPlan(p restore.Plan) error {
	if a.global.json {
		return a.printJSON(p)
	}
	if err := a.summary(p, p.Summary()); err != nil {
		return err
	}
	if p.Executable > 0 {
		fmt.Fprintln(a.out, "Files that a web server could execute are restored only with --allow-executable.")
	}
	if p.Untrusted != "" {
		fmt.Fprintf(a.out, "\n%s.\nIt is restored only with --trust-unknown.\n\n", display.Printable(p.Untrusted))
	}
	for _, text := range p.Refused {
		fmt.Fprintf(a.out, "It cannot be restored there: %s.\n", display.Printable(text))
	}
	if len(p.Refused) > 0 {
		return nil
	}
	_, err := fmt.Fprintf(a.out, "To do it: --confirm %s\n", p.Token)
	return err
}

// restorePost shows what a backup has of a post, and brings it back once that is confirmed.
func (a *commandLine) restorePost(c *cobra.Command, q restore.PostRequest, id, from string) error {
	return a.withBackups(c, func(ctx context.Context, h *backup.Handler) (err error) {
		if q.Backup, err = a.findBackup(ctx, h, catalog.Wanted{ID: id, Destination: from, Database: true}); err != nil {
			return err
		}
		progress, end := a.backupProgress()
		post, err := h.Post(ctx, q, progress)
		end()
		if err != nil {
			return err
		}
		cells := make([][]string, len(post.Tables))
		for i, t := range post.Tables {
			cells[i] = []string{t.Name, strconv.FormatInt(t.RowsNow, 10), strconv.FormatInt(t.RowsBackup, 10)}
		}
		if !a.global.json {
			fmt.Fprintf(a.out, "Post %d of %s: %s\n", post.ID, post.Backup, display.Printable(post.Title))
		}
		if err := a.list(post, []string{"TABLE", "ROWS BEFORE", "ROWS IN THE BACKUP"}, cells, ""); err != nil ||
			a.global.json {
			return err
		}
		if post.Restored {
			_, err = fmt.Fprintln(a.out, "It was restored.")
			return err
		}
		_, err = fmt.Fprintf(a.out, "Nothing was changed. To do it: --confirm %s\n", post.Token)
		return err
	})
}
