package sites

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/jobs/turns"
	"github.com/cmsjobs/cmsjobs/internal/systemd"
)

// Set are the sites of a process.
type Set struct {
	Names []string
	// Load reads the configuration of a site, Open connects its services and Do runs
	// its parts until ctx ends.
	Load func(site string) (*config.Loaded, error)
	Open func(context.Context, *config.Loaded) (*app.Services, error)
	Do   func(context.Context, *app.Services) error
	// Front passes requests on; nil where no site has pages.
	Front *Front
	Slots int // of the process
	Now   func() time.Time
	Log   *slog.Logger

	slots *turns.Slots
	mu    sync.Mutex
	uses  map[string]string // what a site has for itself: which site
}

// The waits before a site is opened again.
const waitLeast, waitMost = time.Second, time.Minute

// Run runs all sites until ctx ends. What is wrong with one site ends it alone, and it
// is opened again; ErrMemory and ErrStuck are about the process and end all.
func (s *Set) Run(ctx context.Context) error {
	s.slots, s.uses = turns.New(s.Slots), map[string]string{}
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range s.Names {
		group.Go(func() error { return s.keep(ctx, name) })
	}
	group.Go(func() error { // a site that is away is no reason to start the process again
		return systemd.Notify(ctx, func(context.Context) error { return nil })
	})
	return group.Wait()
}

// keep runs one site, again and again until ctx ends.
func (s *Set) keep(ctx context.Context, name string) error {
	for wait := waitLeast; ; wait = min(2*wait, waitMost) {
		began := s.Now()
		err := s.once(ctx, name)
		switch {
		case errors.Is(err, jobs.ErrMemory), errors.Is(err, jobs.ErrStuck):
			return fmt.Errorf("site %s: %w", name, err)
		case ctx.Err() != nil:
			return nil
		case s.Now().Sub(began) > waitMost:
			wait = waitLeast
		}
		if err == nil {
			err = errors.New("its parts ended")
		}
		s.Log.Error("site not running; it is opened again", "event", "site.ended", "site", name, "wait", wait,
			"error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// once opens a site and runs it until ctx ends or one of its parts does.
func (s *Set) once(ctx context.Context, name string) (err error) {
	l, err := s.Load(name)
	if err != nil {
		return err
	}
	if err := s.use(name, l); err != nil {
		return err
	}
	defer s.leave(name)
	r, err := s.Open(ctx, l)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	r.Shared = &app.Shared{Turn: s.slots.Worker().Turn, Slots: s.Slots}
	if s.Front != nil {
		s.Front.share(r)
	}
	r.Log.Info("site opened", "event", "site.opened")
	return s.Do(ctx, r)
}

// use refuses a site that has the tables or folders of another one.
func (s *Set) use(name string, l *config.Loaded) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	owned := app.OwnedBy(l)
	var faults config.Faults
	for _, o := range owned {
		f := config.Fault{Path: "sites." + name + "." + o.Key}
		if other, used := s.uses[o.What]; used {
			f.Problem = fmt.Sprintf("the site %s has the same: each site needs its own", other)
			if !slices.Contains(faults, f) {
				faults = append(faults, f)
			}
		}
	}
	if len(faults) > 0 {
		return faults
	}
	for _, o := range owned {
		s.uses[o.What] = name
	}
	return nil
}

func (s *Set) leave(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.uses, func(_, by string) bool { return by == name })
}

// Check finds sites of a configuration that have the same tables or folders.
func Check(all []*config.Loaded) config.Faults {
	var faults config.Faults
	s := Set{uses: map[string]string{}}
	for _, l := range all {
		var wrong config.Faults
		if errors.As(s.use(l.Site, l), &wrong) {
			faults = append(faults, wrong...)
		}
	}
	return faults
}
