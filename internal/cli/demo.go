package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/demo"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/sites"
)

func (a *commandLine) demoCommand() *cobra.Command {
	var dir string
	var o demoOptions
	c := &cobra.Command{
		Use:   "demo",
		Short: "Try cmsjobs on a sample site; nothing to install",
		Long: `Makes a small CMS in a folder (an embedded SQLite database in the CMS's own table shapes, a few
hundred pages and posts, photos) and a second, smaller site in it, starts what "run" starts, enqueues
jobs as the CMS does – with a plain INSERT – and shows them being done. Nothing leaves the folder. It
goes on until you stop it; --once works on the first site alone, stops when all jobs are done and
exits with 1 when one of them failed.`,
		Example: "  cmsjobs demo\n  cmsjobs demo --once\n  cmsjobs demo --once --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			site := demo.NewSite(dir)
			if site.DSN = a.global.dsn; site.DSN != "" && !(o.seedOnly && strings.HasPrefix(site.DSN, "mysql://")) {
				return app.Usagef("the demo runs on SQLite; with --dsn mysql://… it only makes the sample site: add " +
					"--seed-only")
			}
			return a.demo(c.Context(), site, o)
		},
	}
	c.Flags().StringVar(&dir, "dir", "cmsjobs-demo", "the folder of the sample site")
	c.Flags().BoolVar(&o.seedOnly, "seed-only", false, "make the sample site and stop")
	c.Flags().BoolVar(&o.once, "once", false, "do each job once, print a table and stop")
	c.Flags().BoolVar(&o.fresh, "fresh", false, "remove an earlier demo in the folder first")
	return c
}

// demoOptions are the demo's words on the command line.
type demoOptions struct{ once, fresh, seedOnly bool }

func (a *commandLine) demo(ctx context.Context, site demo.Site, o demoOptions) error {
	site, err := a.demoSite(ctx, site, o.fresh)
	if err != nil {
		return err
	}
	if err := demo.Configure(site, site.Club()); err != nil {
		return err
	}
	if o.seedOnly {
		return a.withDemo(ctx, site, func(r *app.Services) error { return demo.AddHistory(ctx, r, site, a.Now()) })
	}
	hook, closeHook, err := demo.StartReceiver()
	if err != nil {
		return err
	}
	defer func() { _ = closeHook() }() // the demo is over then
	if o.once {
		return a.withDemo(ctx, site, func(r *app.Services) error {
			started := a.Now()
			list, err := a.demoJobs(ctx, r, site, hook)
			if err == nil {
				err = a.demoWork(ctx, r, list)
			}
			if err != nil {
				return err
			}
			return a.demoReport(ctx, r, site, list, started)
		})
	}
	return a.demoRun(ctx, site, hook)
}

// demoRun runs the sample site and a second one, as "run" runs several sites.
func (a *commandLine) demoRun(ctx context.Context, site demo.Site, hook string) error {
	club, err := a.demoSite(ctx, site.Club(), false)
	if err != nil {
		return err
	}
	started := a.Now()
	var list []demo.Job // of the first site
	for _, s := range []demo.Site{club, site} {
		if err := a.withDemo(ctx, s, func(r *app.Services) (err error) {
			list, err = a.demoJobs(ctx, r, s, hook)
			return err
		}); err != nil {
			return err
		}
	}
	all := map[string]demo.Site{"": site, site.Name: site, club.Name: club}
	listen := config.Flag{Path: "http.listen", Value: demo.FreePort(), Name: "the demo"}
	load := func(name string) (*config.Loaded, error) {
		s := all[name]
		s.Name = name
		return s.Load(a.demoFlags(listen)...)
	}
	shared, err := load("")
	if err != nil {
		return err
	}
	if shared.HTTP.Enabled {
		a.printf("The admin page: http://%[1]s/sites/%[2]s/admin – user admin, password demo\n"+
			"A second site: http://%[1]s/sites/%[3]s/admin – the same user; signed in to both, you can switch\n",
			shared.HTTP.Listen, site.Name, club.Name)
	}
	var reported sync.Once
	do := func(ctx context.Context, r *app.Services, onAbort func(func())) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return a.partsOf(ctx, r, onAbort) })
		if r.Config.Site == site.Name {
			reported.Do(func() {
				group.Go(func() error { a.demoDone(ctx, r, site, list, started); return nil })
			})
		}
		return group.Wait()
	}
	return a.serveSites(ctx, shared, &sites.Set{Names: []string{site.Name, club.Name}, Load: load}, do,
		shared.HTTP.Enabled)
}

// demoJobs gives a site its past and enqueues its jobs.
func (a *commandLine) demoJobs(ctx context.Context, r *app.Services, site demo.Site, hook string) ([]demo.Job, error) {
	if err := demo.AddHistory(ctx, r, site, a.Now()); err != nil {
		return nil, err
	}
	list := demo.Jobs(site, r.Registry, hook)
	if err := demo.InsertAsCMS(ctx, r, list); err != nil {
		return nil, err
	}
	a.printf("Enqueued %s on the site %s, as the CMS does it: INSERT INTO jobs …",
		display.Plural(len(list), "job", "jobs"), site.Name)
	return list, nil
}

// demoDone waits for the jobs and says what became of them.
func (a *commandLine) demoDone(ctx context.Context, r *app.Services, site demo.Site, list []demo.Job,
	started time.Time) {
	if err := demo.WaitForJobs(ctx, r, list); err != nil {
		return // stopped before they were done
	}
	if err := a.demoReport(ctx, r, site, list, started); err != nil {
		fmt.Fprintln(a.Err, "cmsjobs:", err)
	}
	a.printf("%s", demoNext(site))
}

// demoSite makes the sample site where there is none; fresh removes an earlier one.
func (a *commandLine) demoSite(ctx context.Context, site demo.Site, fresh bool) (demo.Site, error) {
	var err error
	if site.Dir, err = filepath.Abs(site.Dir); err != nil {
		return site, err
	}
	if fresh && site.Exists() {
		if err := os.RemoveAll(site.Dir); err != nil {
			return site, fmt.Errorf("removing the earlier demo: %w", err)
		}
	}
	if site.Exists() {
		return site, nil
	}
	a.printf("Making a sample site in %s …", site.Dir)
	return site, site.Make(ctx, a.Now())
}

// demoWork works until every job has ended, or has failed and waits for its
// next attempt.
func (a *commandLine) demoWork(ctx context.Context, r *app.Services, list []demo.Job) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	working, stop := context.WithCancel(ctx)
	var group errgroup.Group
	group.Go(func() error { defer stop(); return r.Work(working, app.WorkerOptions{}, a.onAbort) })
	err := demo.WaitForJobs(working, r, list)
	stop()
	return errors.Join(group.Wait(), err)
}

func (a *commandLine) demoReport(ctx context.Context, r *app.Services, site demo.Site, list []demo.Job,
	started time.Time) error {
	all, err := demo.Outcomes(ctx, r, list)
	if err != nil {
		return err
	}
	files, err := demo.FilesSince(site.Dir, started)
	if err != nil {
		return err
	}
	failed := 0
	cells := make([][]string, len(all))
	for i, o := range all {
		if o.Status != "completed" {
			failed++
		}
		cells[i] = []string{o.Type, o.Status, fmt.Sprint(o.Attempts),
			(time.Duration(o.DurationMS) * time.Millisecond).String(), o.Shows + suffix(o.Error)}
	}
	answer := map[string]any{"dir": site.Dir, "jobs": all, "files": files, "failed": failed}
	if err := a.list(answer, []string{"JOB", "OUTCOME", "ATTEMPTS", "TOOK", "WHAT IT DOES"}, cells,
		"No jobs."); err != nil {
		return err
	}
	if !a.global.json {
		a.printf("\nFiles written in %s:", site.Dir)
		for _, f := range files {
			a.printf("  %-46s %s", f.Path, humanize.IBytes(uint64(f.Size)))
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d jobs were not completed", failed, len(all))
	}
	return nil
}

func suffix(failure string) string {
	if failure == "" {
		return ""
	}
	return " – " + failure
}

func demoNext(site demo.Site) string {
	return fmt.Sprintf(`
The worker goes on; stop it with Ctrl-C. In another terminal (cmsjobs is: go run ./cmd/cmsjobs):
  cmsjobs --cms %[1]s jobs list
  cmsjobs --cms %[1]s enqueue sitemap.generate '{"force":true}'
  cmsjobs --cms %[1]s enqueue cmsjobs.probe '{"sleep":"20s"}'    (watch it: cmsjobs --cms %[1]s workers)
  cmsjobs --cms %[1]s enqueue cmsjobs.probe '{"fail":"no luck"}' --max-attempts 1
  cmsjobs --cms %[1]s failed groups
  cmsjobs --cms %[1]s doctor
  cmsjobs --config %[2]s doctor    (both sites; --site club is the second one)
With a real CMS: cmsjobs --cms /var/www/site doctor`, site.Dir, site.ConfigFile())
}

// withDemo opens a sample site for something.
func (a *commandLine) withDemo(ctx context.Context, site demo.Site, do func(*app.Services) error) error {
	l, err := site.Load(a.demoFlags()...)
	if err != nil {
		return err
	}
	r, err := a.Open(ctx, l)
	if err != nil {
		return err
	}
	defer a.closing(r)
	return do(r)
}

// demoFlags are the flags that every command has; first are others before them.
func (a *commandLine) demoFlags(first ...config.Flag) []config.Flag {
	flags := first
	if a.global.logLevel != "" {
		flags = append(flags, config.Flag{Path: "log.level", Value: a.global.logLevel, Name: "--log-level"})
	}
	for _, pair := range a.global.set {
		path, value, _ := strings.Cut(pair, "=")
		flags = append(flags, config.Flag{Path: path, Value: value, Name: "--set"})
	}
	return flags
}
