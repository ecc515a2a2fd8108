package media

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Config holds what a Handler works with. Site, Open and Now are needed.
type Config struct {
	Site *cms.Site
	// Open opens the place where the CMS keeps its uploads: a local store on
	// MediaPlace.Folder, or one on the bucket.
	Open    func(context.Context, cms.MediaPlace) (storage.Store, error)
	Options Options
	Now     func() time.Time
	Logger  *slog.Logger
}

// Handler runs media.processImage.
type Handler struct {
	Config
	guard *guard

	mu     sync.Mutex
	place  cms.MediaPlace
	opened storage.Store
}

// New checks the options and returns a handler.
func New(c Config) (*Handler, error) {
	if err := c.Options.Validate(); err != nil {
		return nil, err
	}
	c.Options = c.Options.withDefaults()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Handler{Config: c, guard: newGuard(c.Options.AtOnce, c.Options.Memory)}, nil
}

// store opens the place, or gives the store that is open already while the
// CMS's settings name the same place.
func (h *Handler) store(ctx context.Context, place cms.MediaPlace) (storage.Store, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.opened != nil && h.place == place {
		return h.opened, nil
	}
	opened, err := h.Open(ctx, place)
	if err != nil {
		return nil, fmt.Errorf("opening the CMS's uploads: %w", err)
	}
	h.place, h.opened = place, opened
	return opened, nil
}

// plan reads what the CMS's settings ask for at this moment.
func (h *Handler) plan(ctx context.Context) (plan, error) {
	settings, err := h.Site.Settings(ctx)
	if err != nil {
		return plan{}, err
	}
	p, err := newPlan(h.Site, settings, h.Options)
	if err != nil || h.Options.Sizes != nil || h.Site.Root != "" || !isCMS(settings) || len(p.sizes) == 0 {
		return p, err
	}
	// The code that names the sizes is out of reach: thumbnails tell them.
	store, err := h.store(ctx, p.place)
	if err != nil {
		return plan{}, err
	}
	found, err := siblingSizes(ctx, store, p.place.KeyPrefix)
	if err != nil {
		return plan{}, err
	}
	for _, s := range found {
		same := func(o Size) bool { return o.Width == s.Width && o.Height == s.Height }
		if !slices.ContainsFunc(p.sizes, same) {
			p.sizes = append(p.sizes, s)
		}
	}
	return p, nil
}

// now is the time in UTC to the second, as records keep it.
func (h *Handler) now() time.Time { return h.Now().UTC().Truncate(time.Second) }
