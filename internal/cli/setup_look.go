package cli

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
	"github.com/cmsjobs/cmsjobs/internal/setup"
)

// lookAround finds out about the host and the CMS. It changes nothing.
func (a *commandLine) lookAround(ctx context.Context, o *setupOptions) error {
	l, err := a.load()
	if err != nil {
		return err
	}
	if l.CMS.Dir == "" {
		return app.Usagef("name the CMS's folder: cmsjobs --cms /var/www/site setup")
	}
	if len(a.global.set) > 0 {
		return app.Usagef("setup writes a file with the defaults: leave --set out, and change the file afterwards")
	}
	if o.host, err = setup.Look(a.Self); err != nil {
		return app.UsageError{Err: err}
	}
	r, err := a.Look(ctx, l)
	if err != nil {
		return err
	}
	defer a.closing(r)
	if o.site, err = lookAtSite(ctx, r); err != nil {
		return err
	}
	o.site.DSN = a.global.dsn
	content, err := r.Site.Probe(ctx)
	if err != nil {
		return err
	}
	o.blank = len(content.Content) == 0 && len(r.Config.CMS.Models) == 0
	o.tables, err = (&cms.Site{DB: r.OwnDB}).HasTable(ctx, "cmsjobs_runs")
	return err
}

func lookAtSite(ctx context.Context, r *app.Services) (s setup.Site, err error) {
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
		return s, app.Usagef("the database has no table %s: run  php artisan queue:table && php artisan migrate  in "+
			"%s, or  cmsjobs --cms %s migrate up --create-jobs", s.JobsTable, s.Dir, s.Dir)
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
	if s.MySQL = database.Of(r.DB).Changes == database.BinaryLog; s.MySQL {
		if err := r.DB.GetContext(ctx, &s.Database, "SELECT DATABASE()"); err != nil {
			return s, err
		}
	}
	err = sitemap.Foreign(ctx, sitemap.Folder(s.Public))
	if errors.Is(err, sitemap.ErrForeign) {
		s.ForeignSitemap, err = filepath.Join(s.Public, "sitemap.xml"), nil
	}
	return s, err
}
