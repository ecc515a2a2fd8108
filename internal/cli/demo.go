package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/demo"
	"github.com/cmsjobs/cmsjobs/internal/display"
)

func (a *commandLine) demoCommand() *cobra.Command {
	var dir string
	var o demoOptions
	c := &cobra.Command{
		Use:   "demo",
		Short: "Try cmsjobs on a sample site; nothing to install",
		Long: `Makes a small CMS in a folder (an embedded SQLite database in the CMS's own table shapes, a few
hundred pages and posts, photos), starts what "run" starts, enqueues jobs as the CMS does – with
a plain INSERT – and shows them being done. Nothing leaves the folder. It goes on until you stop
it; --once stops when all jobs are done and exits with 1 when one of them failed.`,
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
	r, err := a.openDemo(ctx, site)
	if err != nil {
		return err
	}
	defer a.closing(r)
	if err := demo.AddHistory(ctx, r, site, a.Now()); err != nil || o.seedOnly {
		return err
	}

	hook, closeHook, err := demo.StartReceiver()
	if err != nil {
		return err
	}
	defer func() { _ = closeHook() }() // the demo is over then
	started := a.Now()
	list := demo.Jobs(site, r.Registry, hook)
	if err := demo.InsertAsCMS(ctx, r, list); err != nil {
		return err
	}
	a.printf("Enqueued %s, as the CMS does it: INSERT INTO jobs …\n", display.Plural(len(list), "job", "jobs"))
	if o.once {
		if err := a.demoWork(ctx, r, list); err != nil {
			return err
		}
		return a.demoReport(ctx, r, site, list, started)
	}
	parts, err := r.Parts(a.onAbort)
	if err != nil {
		return err
	}
	if r.Config.HTTP.Enabled {
		a.printf("The admin page: http://%s/ – user admin, password demo\n", r.Config.HTTP.Listen)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return app.Together(ctx, parts) })
	group.Go(func() error {
		if err := demo.WaitForJobs(ctx, r, list); err != nil {
			return nil // stopped before they were done
		}
		if err := a.demoReport(ctx, r, site, list, started); err != nil {
			fmt.Fprintln(a.Err, "cmsjobs:", err)
		}
		a.printf("%s", demoNext(site))
		return nil
	})
	return group.Wait()
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
With a real CMS: cmsjobs --cms /var/www/site doctor`, site.Dir)
}

// openDemo opens the sample site with the flags that every command has.
func (a *commandLine) openDemo(ctx context.Context, site demo.Site) (*app.Services, error) {
	var flags []config.Flag
	if a.global.logLevel != "" {
		flags = append(flags, config.Flag{Path: "log.level", Value: a.global.logLevel, Name: "--log-level"})
	}
	for _, pair := range a.global.set {
		path, value, _ := strings.Cut(pair, "=")
		flags = append(flags, config.Flag{Path: path, Value: value, Name: "--set"})
	}
	l, err := site.Load(flags...)
	if err != nil {
		return nil, err
	}
	return a.Open(ctx, l)
}
