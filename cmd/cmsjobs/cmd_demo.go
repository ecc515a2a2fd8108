package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/cmsjobs/cmsjobs/config"
)

func (a *app) demoCommand() *cobra.Command {
	var dir string
	var o demoOptions
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show everything at once, on a sample site, with nothing to install",
		Long: `Makes a small CMS in a folder (an embedded SQLite database in the CMS's own table shapes, a few hundred
pages and posts, photos), starts what "run" starts, enqueues jobs as the CMS does – with a plain INSERT –
and shows them being done. Nothing leaves the folder. It goes on until you stop it; --once stops when all
jobs are done and exits with 1 when one of them failed.`,
		Example: "  cmsjobs demo\n  cmsjobs demo --once\n  cmsjobs demo --once --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			site := newDemoSite(dir)
			if site.dsn = a.global.dsn; site.dsn != "" && !(o.seedOnly && strings.HasPrefix(site.dsn, "mysql://")) {
				return usagef("the demo runs on SQLite; with --dsn mysql://… it only makes the sample site: add --seed-only")
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

func (a *app) demo(ctx context.Context, site demoSite, o demoOptions) error {
	var err error
	if site.dir, err = filepath.Abs(site.dir); err != nil {
		return err
	}
	if o.fresh && site.there() {
		if err := os.RemoveAll(site.dir); err != nil {
			return fmt.Errorf("removing the earlier demo: %w", err)
		}
	}
	if !site.there() {
		a.say("Making a sample site in %s …", site.dir)
		if err := site.make(ctx, a.now()); err != nil {
			return err
		}
	}
	r, err := a.openDemo(ctx, site)
	if err != nil {
		return err
	}
	defer a.closing(r)
	if err := demoHistory(ctx, r, site, a.now()); err != nil || o.seedOnly {
		return err
	}

	hook, closeHook, err := demoReceiver()
	if err != nil {
		return err
	}
	defer func() { _ = closeHook() }() // the demo is over then
	started := a.now()
	list := demoJobs(site, r.registry, hook)
	if err := insertAsCMS(ctx, r, list); err != nil {
		return err
	}
	a.say("Enqueued %d jobs, as the CMS does it: INSERT INTO jobs …\n", len(list))
	if o.once {
		if err := a.demoWork(ctx, r, list); err != nil {
			return err
		}
		return a.demoReport(ctx, r, site, list, started)
	}
	parts, err := a.parts(r)
	if err != nil {
		return err
	}
	if r.config.HTTP.Enabled {
		a.say("The admin page: http://%s/ – user admin, password demo\n", r.config.HTTP.Listen)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return together(ctx, parts) })
	group.Go(func() error {
		if err := waitForJobs(ctx, r, list); err != nil {
			return nil // stopped before they were done
		}
		if err := a.demoReport(ctx, r, site, list, started); err != nil {
			fmt.Fprintln(a.err, "cmsjobs:", err)
		}
		a.say("%s", demoNext(site))
		return nil
	})
	return group.Wait()
}

// openDemo opens the sample site as any site is opened: by its folder. What
// the user's own configuration says does not count here.
func (a *app) openDemo(ctx context.Context, site demoSite) (*rooms, error) {
	flags := []config.Flag{
		{Path: "cms.dir", Value: site.dir, Name: "the demo"},
		{Path: "mail.driver", Value: "files", Name: "the demo"},
		{Path: "mail.dir", Value: filepath.Join(site.dir, "mails"), Name: "the demo"},
		{Path: "queue.poll", Value: "200ms", Name: "the demo"},
		{Path: "queue.concurrency", Value: "2", Name: "the demo"},
		{Path: "queue.export_dir", Value: filepath.Join(site.dir, "storage", "app"), Name: "the demo"},
		{Path: "log.level", Value: "warn", Name: "the demo"},
		{Path: "http.admin_user", Value: "admin", Name: "the demo"},
		{Path: "http.admin_password", Value: "demo", Name: "the demo"},
		{Path: "http.listen", Value: demoPort(), Name: "the demo"},
		{Path: "webhook.allow_private", Value: "127.0.0.0/8", Name: "the demo"},
		{Path: "webhook.allow_http", Value: "true", Name: "the demo"},
		{Path: "backup.free_space", Value: "64MiB", Name: "the demo"},
		{Path: "backup.min_interval", Value: "0s", Name: "the demo"}, // each demo makes its backup, however soon
	}
	if a.global.logLevel != "" {
		flags = append(flags, config.Flag{Path: "log.level", Value: a.global.logLevel, Name: "--log-level"})
	}
	for _, pair := range a.global.set {
		path, value, _ := strings.Cut(pair, "=")
		flags = append(flags, config.Flag{Path: path, Value: value, Name: "--set"})
	}
	empty := filepath.Join(site.dir, "cmsjobs.yaml")
	if _, err := os.Stat(empty); errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(empty, []byte("# The demo's configuration; see: cmsjobs config example\n"), 0o600); err != nil {
			return nil, fmt.Errorf("writing the demo's configuration: %w", err)
		}
	}
	l, err := config.Load(config.Sources{File: empty, Flags: flags})
	if err != nil {
		return nil, err
	}
	return a.open(ctx, l)
}

// demoWork works until every job has ended, or has failed and waits for its
// next attempt.
func (a *app) demoWork(ctx context.Context, r *rooms, list []demoJob) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	working, stop := context.WithCancel(ctx)
	var group errgroup.Group
	group.Go(func() error { defer stop(); return a.work(working, r, workerOptions{}) })
	err := waitForJobs(working, r, list)
	stop()
	return errors.Join(group.Wait(), err)
}

func waitForJobs(ctx context.Context, r *rooms, list []demoJob) error {
	look := time.NewTicker(demoPatience)
	defer look.Stop()
	for {
		all, err := outcomes(ctx, r, list)
		if err != nil {
			return err
		}
		if !pending(all) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the jobs were not done in time: %w", ctx.Err())
		case <-look.C:
		}
	}
}

func (a *app) demoReport(ctx context.Context, r *rooms, site demoSite, list []demoJob, started time.Time) error {
	all, err := outcomes(ctx, r, list)
	if err != nil {
		return err
	}
	files, err := filesSince(site.dir, started)
	if err != nil {
		return err
	}
	failed := 0
	cells := make([][]string, len(all))
	for i, o := range all {
		if o.State != "completed" {
			failed++
		}
		cells[i] = []string{o.Kind, o.State, fmt.Sprint(o.Attempts), (time.Duration(o.DurationMS) * time.Millisecond).String(), o.Shows + suffix(o.Error)}
	}
	answer := map[string]any{"dir": site.dir, "jobs": all, "files": files, "failed": failed}
	if err := a.list(answer, []string{"JOB", "OUTCOME", "ATTEMPTS", "TOOK", "WHAT IT DOES"}, cells, "No jobs."); err != nil {
		return err
	}
	if !a.global.json {
		a.say("\nFiles written in %s:", site.dir)
		for _, f := range files {
			a.say("  %-46s %s", f.Path, humanize.IBytes(uint64(f.Size)))
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

type demoFile struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// filesSince lists what jobs wrote into the site's public folder and mails.
func filesSince(dir string, since time.Time) ([]demoFile, error) {
	files := []demoFile{}
	for _, part := range []string{"public", "mails", filepath.Join("storage", "app", "cmsjobs-backups")} {
		err := filepath.WalkDir(filepath.Join(dir, part), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err != nil || info.ModTime().Before(since.Add(-10*time.Millisecond)) || strings.HasPrefix(d.Name(), ".") {
				return err
			}
			relative, err := filepath.Rel(dir, path)
			files = append(files, demoFile{filepath.ToSlash(relative), info.Size()})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("listing what was written: %w", err)
		}
	}
	return files, nil
}

func demoNext(site demoSite) string {
	return fmt.Sprintf(`
The worker goes on; stop it with Ctrl-C. In another terminal (cmsjobs is: go run ./cmd/cmsjobs):
  cmsjobs --cms %[1]s jobs list
  cmsjobs --cms %[1]s enqueue sitemap.generate '{"force":true}'
  cmsjobs --cms %[1]s enqueue cmsjobs.probe '{"sleep":"20s"}'    (watch it: cmsjobs --cms %[1]s workers)
  cmsjobs --cms %[1]s enqueue cmsjobs.probe '{"fail":"no luck"}' --max-attempts 1
  cmsjobs --cms %[1]s failed groups
  cmsjobs --cms %[1]s doctor
With a real CMS: cmsjobs --cms /var/www/site doctor`, site.dir)
}
