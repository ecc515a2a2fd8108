package media

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// newWatermark fills what the options leave open from the CMS's settings; nil
// where nothing is to be stamped by us.
func newWatermark(o *Watermark, settings cms.Settings) *Watermark {
	if o == nil || settings.Bool("media_watermark_enabled", false) {
		return nil
	}
	w := *o
	w.Source = cmp.Or(w.Source, settings["media_watermark_source"])
	w.Percent = cmp.Or(w.Percent, settings.Int("media_watermark_size", 0), 10)
	w.Opacity = cmp.Or(w.Opacity, settings.Int("media_watermark_opacity", 0), 70)
	w.Position = cmp.Or(w.Position, settings["media_watermark_position"], "bottom-right")
	w.X = cmp.Or(w.X, settings.Int("media_watermark_position_x", 10))
	w.Y = cmp.Or(w.Y, settings.Int("media_watermark_position_y", 10))
	if w.Folders == nil {
		w.Folders = folderIDs(settings["media_folders_can_add_watermark"])
	}
	if w.Source == "" {
		return nil
	}
	return &w
}

// folderIDs reads a JSON list of ids, which PHP writes as strings or numbers.
func folderIDs(list string) []string {
	var ids []ID
	if json.Unmarshal([]byte(list), &ids) != nil {
		return nil
	}
	var out []string
	for _, id := range ids {
		out = append(out, string(id))
	}
	return out
}

// applyWatermark puts the watermark onto the original, once: the stamped file carries a
// marker, and it replaces the original whole. The mark itself is not stamped,
// nor is what is too large to be decoded whole.
func (h *Handler) applyWatermark(ctx context.Context, w *work) error {
	mark := w.plan.watermark
	if mark == nil || picture.Stamped(w.data) || w.name.Page == path.Clean(mark.Source) ||
		len(mark.Folders) > 0 && !slices.Contains(mark.Folders, w.file.FolderID) {
		return nil
	}
	free, err := h.guard.take(ctx, 20*w.header.Pixels())
	if err != nil {
		return err
	}
	defer free()
	file, err := readAll(ctx, w.store, w.plan.place.Key(path.Clean(mark.Source)), h.Options.Limits.FileBytes)
	if err != nil {
		return fmt.Errorf("reading the watermark: %w", err)
	}
	p := picture.Watermark{Mark: file, Percent: mark.Percent, Opacity: mark.Opacity,
		Position: picture.Position(mark.Position), X: mark.X, Y: mark.Y}
	stamped, err := w.stamped(ctx, h.Options, p)
	if errors.Is(err, picture.ErrTooLarge) {
		h.Logger.WarnContext(ctx, "picture is too large for a watermark", "event", "media.watermark_skipped",
			"url", w.file.URL, "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("stamping the original: %w", err)
	}
	if !picture.Stamped(stamped) {
		return nil // an animation
	}
	return w.replace(ctx, stamped)
}

func (w *work) stamped(ctx context.Context, o Options, mark picture.Watermark) ([]byte, error) {
	maker := w.maker(o)
	stamped, err := maker.Stamp(w.data, mark)
	if errors.Is(err, picture.ErrUnbounded) {
		maker.Bounded = false
		return o.Apart.Stamp(ctx, maker, w.data, mark)
	}
	return stamped, err
}

// replace writes a new original and takes note of it.
func (w *work) replace(ctx context.Context, data []byte) error {
	key := w.plan.place.Key(w.name.File)
	o := storage.PutOptions{ContentType: w.header.Format.MIME(), ExpectedSize: int64(len(data)), Public: true}
	if err := w.store.Put(ctx, key, bytes.NewReader(data), o); err != nil {
		return fmt.Errorf("writing the stamped original: %w", err)
	}
	info, err := w.store.Stat(ctx, key)
	if err != nil {
		return fmt.Errorf("looking for the stamped original: %w", err)
	}
	w.data, w.modified = data, info.Modified
	w.source = Source{Size: info.Size, Modified: info.Modified.UTC().Truncate(time.Second)}
	w.force = true // thumbnails of the unstamped original are out of date
	if w.header, err = picture.Inspect(data); err != nil {
		return fmt.Errorf("the stamped original: %w", err)
	}
	return nil
}

// readAll reads an object of at most limit bytes.
func readAll(ctx context.Context, store storage.Store, key string, limit int64) ([]byte, error) {
	r, info, err := store.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var b bytes.Buffer
	if info.Size > 0 && info.Size <= limit {
		b.Grow(int(info.Size) + bytes.MinRead)
	}
	if _, err := b.ReadFrom(io.LimitReader(r, limit+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > limit {
		return nil, fmt.Errorf("%w: it has more than %d bytes", picture.ErrTooLarge, limit)
	}
	return b.Bytes(), nil
}
