package media

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
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

// Register makes r run media.processImage here.
func (h *Handler) Register(r *jobs.Registry) { jobs.Handle(r, ProcessImage, h.processImage) }

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

func (h *Handler) processImage(ctx context.Context, j jobs.Job, p ProcessImagePayload) error {
	id := string(p.MediaFileID)
	if id == "0" {
		id = ""
	}
	file, err := h.Site.MediaFile(ctx, id, p.FilePath)
	if errors.Is(err, cms.ErrNoMedia) {
		return jobs.Permanent(err)
	}
	if err != nil {
		return err
	}
	plan, err := h.plan(ctx)
	if err != nil {
		return err
	}
	outcome, err := h.process(ctx, plan, file, p.Force)
	if err == nil {
		return jobs.SetResult(ctx, outcome)
	}
	cause := err
	err = fmt.Errorf("%s: %w", file.URL, cause)
	if hopeless(err) {
		err = jobs.Permanent(err)
	}
	ranOut := errors.Is(context.Cause(ctx), jobs.ErrTimeout)
	if jobs.IsPermanent(err) || j.Last() && (ctx.Err() == nil || ranOut) {
		err = errors.Join(err, h.flag(ctx, file, cause))
	}
	return err
}

// hopeless says whether trying again cannot help: the file is not there
// or can never be, or is over a limit. A picture that a library cannot decode is tried
// again: it may have been read while it was being uploaded.
func hopeless(err error) bool {
	return errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrKey) || errors.Is(err, cms.ErrOutside) ||
		errors.Is(err, picture.ErrTooLarge)
}

// flagTimeout is how long marking a row may take when its job's time is over.
const flagTimeout = 10 * time.Second

// flag marks the row as failed and keeps the rest of the record.
func (h *Handler) flag(ctx context.Context, file cms.MediaFile, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flagTimeout)
	defer cancel()
	record, _ := ReadRecord(file.Options)
	at := h.now()
	record.Error, record.FailedAt = cause.Error(), &at
	return h.Site.SetMediaOption(ctx, file.ID, recordKey, record)
}
