package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/setup"
	"github.com/cmsjobs/cmsjobs/migrations"
)

// removeSetup undoes what setup wrote.
func (a *commandLine) removeSetup(ctx context.Context, o *setupOptions) error {
	if a.global.cms == "" {
		return app.Usagef("name the CMS's folder: cmsjobs --cms /var/www/site setup --remove")
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
	if err != nil {
		return app.UsageError{Err: err}
	}
	r := o.record
	a.say("To be undone: %s (%s) beside %s.", r.Name, r.Way, r.Dir)
	if yes, err := a.ask(o, "Do it? [Y/n] ", "y"); err != nil || !strings.HasPrefix(strings.ToLower(yes), "y") {
		return errors.Join(err, errors.New("nothing was changed"))
	}
	runner := setup.Runner{Run: setup.Command, Say: a.say}
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
	if err := a.asAccount(ctx, r, a.out, undo...); err != nil {
		return fmt.Errorf("undoing the first jobs: %w", err)
	}
	return runner.Remove(ctx, r)
}

// setupUndoCommand undoes the first jobs, in the name of the site's account.
func (a *commandLine) setupUndoCommand() *cobra.Command {
	var id string
	var places []string
	var maps, tables bool
	c := &cobra.Command{Use: "undo", Short: "Undo the first jobs of setup (setup --remove calls it)", Hidden: true,
		Example: "  cmsjobs setup --remove", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			err := a.withServices(c, func(ctx context.Context, r *app.Services) error {
				return errors.Join(a.undoBackup(ctx, r.Handlers.Backup, id), a.undoSitemap(ctx, r, maps))
			})
			if err != nil || !tables {
				return errors.Join(err, a.undoPlaces(places))
			}
			if err := a.withDatabases(c, func(ctx context.Context, r *app.Services) error {
				return migrations.Down(ctx, r.OwnDB)
			}); err != nil {
				return app.DatabaseError{Err: err}
			}
			a.say("removed the tables cmsjobs_*")
			return a.undoPlaces(places)
		}}
	c.Flags().StringVar(&id, "backup", "", "the first backup")
	c.Flags().StringArrayVar(&places, "place", nil, "a folder that was made")
	c.Flags().BoolVar(&maps, "sitemap", false, "remove the map")
	c.Flags().BoolVar(&tables, "tables", false, "remove the tables")
	return c
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
		if err := h.Delete(ctx, b); err != nil {
			return err
		}
		a.say("removed the backup %s at %s", b.ID, b.Destination)
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

// undoPlaces removes folders that setup's first jobs made and that are empty again.
func (a *commandLine) undoPlaces(places []string) error {
	for _, place := range places {
		if err := os.Remove(place); err != nil && !errors.Is(err, os.ErrNotExist) {
			a.say("kept %s: %v", place, err)
		}
	}
	return nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
