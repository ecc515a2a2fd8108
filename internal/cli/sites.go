package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/sites"
)

// doing is what a command does with the services of a site, until the context ends.
type doing func(ctx context.Context, r *app.Services, onAbort func(func())) error

// partsOf runs the parts of a site that its configuration enables.
func (a *commandLine) partsOf(ctx context.Context, r *app.Services, onAbort func(func())) error {
	parts, err := r.Parts(onAbort)
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		<-ctx.Done() // a site with nothing to run is no fault
		return nil
	}
	return r.Tracing(ctx, func() error { return app.Together(ctx, parts) })
}

// workOf runs the worker of a site.
func (a *commandLine) workOf(o app.WorkerOptions) doing {
	return func(ctx context.Context, r *app.Services, onAbort func(func())) error {
		return workOn(ctx, r, o, onAbort)
	}
}

// chosenSites are all sites, or the one that the command line names.
func (a *commandLine) chosenSites(shared *config.Loaded) ([]string, error) {
	if a.global.site == "" {
		return shared.Sites, nil
	}
	if !slices.Contains(shared.Sites, a.global.site) {
		return nil, app.UsageError{Err: config.UnknownSite{Name: a.global.site, Known: shared.Sites}}
	}
	return []string{a.global.site}, nil
}

// runSites runs all sites in this process, or the one that the command line names.
func (a *commandLine) runSites(c *cobra.Command, shared *config.Loaded, do doing) error {
	names, err := a.chosenSites(shared)
	if err != nil {
		return err
	}
	set := &sites.Set{Names: names, Load: func(site string) (*config.Loaded, error) {
		return a.loadSite(site, changed(c, workFlags)...)
	}}
	return a.serveSites(c.Context(), shared, set, do, shared.HTTP.Enabled && c.Name() == "run")
}

// serveSites runs the sites of a set, which has their names and configurations; pages
// says whether their pages are served.
func (a *commandLine) serveSites(ctx context.Context, shared *config.Loaded, set *sites.Set, do doing,
	pages bool) error {
	log := a.Logger(shared.Log)
	aborts := &aborts{}
	a.onAbort(aborts.all)
	a.deadline.Store(a.deadlineOf(shared, set, log.Warn))
	set.Slots, set.Now, set.Log, set.Open = shared.Process.Slots, a.Now, log, a.Open
	set.Do = func(ctx context.Context, r *app.Services) error {
		return do(ctx, r, func(abort func()) { aborts.set(r.Config.Site, abort) })
	}
	group, ctx := errgroup.WithContext(ctx)
	if pages {
		var err error
		if set.Front, err = sites.NewFront(set.Names, shared, &a.Process); err != nil {
			return err
		}
		l, err := app.Listen(shared.HTTP)
		if err != nil {
			return err
		}
		if l, err = app.Secured(l, shared.HTTP, log); err != nil {
			return err
		}
		group.Go(func() error { return set.Front.Serve(ctx, l) })
	}
	group.Go(func() error { return set.Run(ctx) })
	return group.Wait()
}

// deadlineOf is the longest grace period of the sites. One whose configuration is broken
// has none.
func (a *commandLine) deadlineOf(shared *config.Loaded, set *sites.Set, warn func(string, ...any)) *deadline {
	grace := shared.Queue.Grace
	for _, name := range set.Names {
		if l, err := set.Load(name); err == nil {
			grace = max(grace, l.Queue.Grace)
		}
	}
	return a.endingAfter(grace, warn)
}

// aborts are what ends the workers of the sites without their grace period.
type aborts struct {
	mu sync.Mutex
	of map[string]func()
}

func (a *aborts) set(site string, abort func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[string]func(){}
	}
	a.of[site] = abort
}

func (a *aborts) all() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, abort := range a.of {
		abort()
	}
}

// checkConfig finds what is wrong with the configuration: of all sites, or of the one
// that the command line names.
func (a *commandLine) checkConfig() error {
	shared, err := a.loadSite("")
	if shared == nil || len(shared.Sites) == 0 {
		return a.checkLoaded(shared, err)
	}
	var faults config.Faults
	if err != nil && !errors.As(err, &faults) {
		return err
	}
	names, err := a.chosenSites(shared)
	if err != nil {
		return err
	}
	var all []*config.Loaded
	for _, name := range names {
		l, err := a.loadSite(name)
		err = a.checkLoaded(l, err)
		var wrong config.Faults
		switch {
		case err == nil:
			all = append(all, l)
		case errors.As(err, &wrong):
			for _, f := range wrong {
				if !slices.Contains(faults, f) { // what all share is listed once
					faults = append(faults, f)
				}
			}
		default:
			faults = append(faults, config.Fault{Path: "sites." + name, Problem: err.Error()})
		}
	}
	if faults = append(faults, sites.Check(all)...); len(faults) > 0 {
		return faults
	}
	return nil
}

// checkLoaded finds what is wrong with a configuration beyond its values.
func (a *commandLine) checkLoaded(l *config.Loaded, err error) error {
	if err = checkFiles(l, err); err == nil {
		err = a.CheckTypes(l)
	}
	return err
}

// eachSite does something for each site that the command is for, one after the other;
// what went wrong with one is reported, and the next one has its turn.
func (a *commandLine) eachSite(do func(site string) error) error {
	shared, err := a.loadSite("")
	if err != nil {
		return err
	}
	if len(shared.Sites) == 0 {
		return do("")
	}
	names, err := a.chosenSites(shared)
	if err != nil {
		return err
	}
	var wrong []error
	for _, name := range names {
		if err := do(name); err != nil {
			wrong = append(wrong, fmt.Errorf("site %s: %w", name, err))
		}
	}
	return errors.Join(wrong...)
}

// completeSites completes the value of --site.
func (a *commandLine) completeSites(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	l, _ := a.loadSite("")
	if l == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return l.Sites, cobra.ShellCompDirectiveNoFileComp
}
