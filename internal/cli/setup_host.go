package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/setup"
	"github.com/cmsjobs/cmsjobs/migrations"
)

// removeSetup undoes what setup wrote.
func (a *commandLine) removeSetup(ctx context.Context, o *setupOptions) error {
	if a.global.cms == "" {
		return app.UsageError{Err: a.texts.Errorf("name the CMS's folder: cmsjobs --cms " +
			"/var/www/site setup --remove")}
	}
	dir, err := filepath.Abs(a.global.cms)
	if err != nil {
		return err
	}
	folders := []string{"/etc/cmsjobs"}
	if own, err := os.UserConfigDir(); err == nil {
		folders = append(folders, filepath.Join(own, "cmsjobs"))
	}
	o.record, err = setup.Find(o.choice.Prefix, dir, o.choice.Name, folders...)
	if errors.Is(err, setup.ErrNotSetUp) {
		err = a.texts.Errorf("no setup is recorded here for %s", dir)
	}
	if err != nil {
		return app.UsageError{Err: err}
	}
	r := o.record
	a.say("To be undone: %s (%s) beside %s.", r.Name, r.Way, r.Dir)
	if r.Backup != "" {
		a.say("  the first backup %s goes, with its repository of files; if another was made since, "+
			"all backups and "+
			"the repository stay", r.Backup)
	}
	if err := a.agreed(o); err != nil {
		return err
	}
	runner := setup.Runner{Run: setup.Command, Say: a.say, Texts: a.texts}
	if err := runner.Stop(ctx, r); err != nil {
		return err
	}
	undo := []string{"setup", "undo"}
	if r.Backup != "" {
		undo = append(undo, "--backup", r.Backup)
	}
	for _, place := range r.Places {
		undo = append(undo, "--place", place)
	}
	if r.Sitemap {
		undo = append(undo, "--sitemap")
	}
	if r.Tables {
		undo = append(undo, "--tables")
	}
	if r.RollbackJournal {
		undo = append(undo, "--rollback-journal")
	}
	if err := a.asAccount(ctx, r, a.out, undo...); err != nil {
		return a.texts.Errorf("undoing the first jobs: %w", err)
	}
	return runner.Remove(ctx, r)
}

// setupUndoCommand undoes the first jobs, in the name of the site's account.
func (a *commandLine) setupUndoCommand() *cobra.Command {
	var id string
	var places []string
	var maps, tables, journal bool
	c := &cobra.Command{Use: "undo", Short: "Undo the first jobs of setup (setup --remove calls it)", Hidden: true,
		Example: "  cmsjobs setup --remove", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.speak(&setupOptions{}); err != nil {
				return err
			}
			err := a.withServices(c, func(ctx context.Context, r *app.Services) error {
				return errors.Join(a.undoBackup(ctx, r.Handlers.Backup, id), a.undoSitemap(ctx, r, maps))
			})
			if err != nil {
				return errors.Join(err, a.undoPlaces(places))
			}
			if err := a.undoDatabase(c, tables, journal); err != nil {
				return err
			}
			return a.undoPlaces(places)
		}}
	c.Flags().StringVar(&id, "backup", "", "the first backup")
	c.Flags().StringArrayVar(&places, "place", nil, "a folder that was made")
	c.Flags().BoolVar(&maps, "sitemap", false, "remove the map")
	c.Flags().BoolVar(&tables, "tables", false, "remove the tables")
	c.Flags().BoolVar(&journal, "rollback-journal", false, "take the write-ahead log from a SQLite file")
	return c
}

// undoDatabase removes our tables, and what the service changed in a SQLite file itself.
func (a *commandLine) undoDatabase(c *cobra.Command, tables, journal bool) error {
	var dsn config.DSN
	err := a.withDatabases(c, func(ctx context.Context, r *app.Services) error {
		if dsn = r.Config.Database.DSN; !tables {
			return nil
		}
		return migrations.Down(ctx, r.OwnDB)
	})
	if err != nil {
		return app.DatabaseError{Err: err}
	}
	if tables {
		a.say("removed the tables cmsjobs_*")
	}
	if journal { // the service's connections are closed: SQLite changes it for the only one
		if err := database.RollbackJournal(c.Context(), dsn.Reveal()); err != nil {
			a.say("kept the write-ahead log of the database, which another program uses: %v", err)
		}
	}
	return nil
}

// undoBackup deletes the first backup where no other was made since; else all stay.
func (a *commandLine) undoBackup(ctx context.Context, h *backup.Handler, id string) error {
	if h == nil || id == "" {
		return nil
	}
	list, err := h.List(ctx, "")
	if err != nil {
		return err
	}
	if others := slices.ContainsFunc(list, func(b catalog.Stored) bool { return b.ID != id }); others {
		a.say("kept the backups: there are others than the first one")
		return nil
	}
	for _, b := range list {
		kept, err := h.DeleteFirst(ctx, b)
		if err != nil {
			return err
		}
		a.say("removed the backup %s at %s", b.ID, b.Destination)
		if kept {
			a.say("kept the repository at %s: it holds more than the first backup wrote", b.Destination)
		}
	}
	return nil
}

func (a *commandLine) undoSitemap(ctx context.Context, r *app.Services, maps bool) error {
	if !maps || r.Handlers.Sitemap == nil {
		return nil
	}
	names, err := r.Handlers.Sitemap.Remove(ctx)
	if err == nil {
		a.say("removed %d files of the sitemap", len(names))
	}
	return err
}

// undoPlaces removes folders that setup's first jobs made, with those in them, where no
// file is left.
func (a *commandLine) undoPlaces(places []string) error {
	for _, place := range places {
		var folders []string
		err := filepath.WalkDir(place, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				folders = append(folders, path)
			}
			return err
		})
		for _, folder := range slices.Backward(folders) {
			if err != nil {
				break
			}
			err = os.Remove(folder)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			a.say("kept %s: %v", place, err)
		}
	}
	return nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// lookAround finds out about the host and the CMS. It changes nothing.
func (a *commandLine) lookAround(ctx context.Context, o *setupOptions) error {
	l, err := a.load()
	if err != nil {
		return err
	}
	if l.CMS.Dir == "" {
		return app.UsageError{Err: a.texts.Errorf("name the CMS's folder: cmsjobs --cms /var/www/site setup")}
	}
	if len(a.global.set) > 0 {
		return app.UsageError{Err: a.texts.Errorf("setup writes a file with the defaults: leave " +
			"--set out, and change the " +
			"file afterwards")}
	}
	if o.host, err = setup.Look(a.Self); err != nil {
		return app.UsageError{Err: err}
	}
	file, _ := l.Database.DSN.SQLiteFile()
	ahead := true
	if file != "" {
		if ahead, err = setup.WritesAhead(file); err != nil {
			return app.DatabaseError{Err: fmt.Errorf("reading the SQLite database: %w", err)}
		}
	}
	r, err := a.Look(ctx, l)
	if err != nil {
		return err
	}
	defer a.closing(r)
	if o.site, err = lookAtSite(ctx, r, a.texts); err != nil {
		return err
	}
	o.site.DSN, o.site.DatabaseFile, o.site.RollbackJournal = a.global.dsn, file, !ahead
	content, err := r.Site.Probe(ctx)
	if err != nil {
		return err
	}
	o.blank = len(content.Content) == 0 && len(r.Config.CMS.Models) == 0
	o.tables, err = (&cms.Site{DB: r.OwnDB}).HasTable(ctx, "cmsjobs_runs")
	return err
}

func lookAtSite(ctx context.Context, r *app.Services, texts setup.Texts) (s setup.Site, err error) {
	if s.Dir, err = filepath.Abs(r.Config.CMS.Dir); err != nil {
		return s, err
	}
	if s.Owner, err = setup.Owner(s.Dir); err != nil {
		return s, app.UsageError{Err: err}
	}
	if s.Public, err = filepath.Abs(r.Site.Public()); err != nil {
		return s, err
	}
	s.Application = string(r.Site.Application())
	if logs := filepath.Join(s.Dir, "storage", "logs"); isFolder(logs) {
		s.Logs = logs
	}
	s.Prefix, s.JobsTable = r.Site.Prefix, r.Site.JobsTable()
	jobs, err := r.Site.HasTable(ctx, r.Config.Database.JobsTable)
	if err != nil {
		return s, err
	}
	if !jobs {
		return s, app.UsageError{Err: texts.Errorf("the database has no table %s: run  php artisan "+
			"queue:table && php artisan "+
			"migrate  in %s, or  cmsjobs --cms %s migrate up --create-jobs", s.JobsTable, s.Dir, s.Dir)}
	}
	if s.Accounts, err = r.Site.Accounts(ctx); err != nil {
		return s, err
	}
	if s.Tables, err = r.Site.TableNames(ctx); err != nil {
		return s, err
	}
	if err := r.DB.GetContext(ctx, &s.JobsRows, "SELECT COUNT(*) FROM "+s.JobsTable); err != nil {
		return s, err
	}
	if err := lookAtEngine(ctx, r, &s); err != nil {
		return s, err
	}
	err = sitemap.Foreign(ctx, sitemap.Folder(s.Public))
	if errors.Is(err, sitemap.ErrForeign) {
		s.ForeignSitemap, err = filepath.Join(s.Public, "sitemap.xml"), nil
	}
	return s, err
}

// lookAtEngine finds out what the CMS's database needs and what its account is granted.
func lookAtEngine(ctx context.Context, r *app.Services, s *setup.Site) error {
	switch s.Engine = setup.Engine(database.Of(r.DB).Name); s.Engine {
	case setup.MySQL:
		return r.DB.GetContext(ctx, &s.Database, "SELECT DATABASE()")
	case setup.PostgreSQL:
		for _, name := range []string{"pg_dump", "psql"} {
			if _, err := exec.LookPath(name); err != nil {
				s.Missing = append(s.Missing, name)
			}
		}
		if err := r.DB.QueryRowxContext(ctx, "SELECT current_schema(), current_user").Scan(&s.Schema,
			&s.DatabaseAccount); err != nil {
			return err
		}
		return r.DB.SelectContext(ctx, &s.Sequences, `SELECT t.relname AS "table", q.relname AS name FROM pg_class q
			JOIN pg_depend d ON d.objid = q.oid AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
			JOIN pg_class t ON t.oid = d.refobjid JOIN pg_namespace n ON n.oid = q.relnamespace
			WHERE q.relkind = 'S' AND n.nspname = current_schema() ORDER BY t.relname`)
	}
	return nil
}
