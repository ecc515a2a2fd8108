package sitemap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// ErrForeign says that a file lies where the map would go that is not ours: it
// has no mark of this service. It is never replaced.
var ErrForeign = errors.New("this service did not write it, so it stays as it is")

// refuseForeign is ErrForeign where the target has a file of the name that
// carries no marker, and nil where it has none.
func refuseForeign(ctx context.Context, t target, name string) error {
	r, err := t.open(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking at the sitemap: %w", err)
	}
	ours := carriesMarker(name, r)
	if err := r.Close(); err != nil {
		return err
	}
	if ours {
		return nil
	}
	return fmt.Errorf("%s is in %s already: %w. Move it away, give the maps another folder (sitemap.dir), or turn "+
		"the entry off (schedule.entries.sitemap.generate.enabled: false)", name, t, ErrForeign)
}

// Foreign is nil, or an ErrForeign that names the sitemap.xml of another program
// in the place of ours.
func (h *Handler) Foreign(ctx context.Context) error { return refuseForeign(ctx, h.target, indexName) }

// Foreign is Handler.Foreign for a place that no handler has yet.
func Foreign(ctx context.Context, t Target) error { return refuseForeign(ctx, t, indexName) }
