package media

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
)

// process makes the renditions of one row that are missing or out of date;
// force makes all of them. Its errors do not name the file: callers do.
func (h *Handler) process(ctx context.Context, p plan, file cms.MediaFile, force bool) (Outcome, error) {
	out := Outcome{ID: file.ID, URL: file.URL}
	if out.Skipped = notForUs(file); out.Skipped != "" {
		return out, nil
	}
	w, err := h.look(ctx, p, file, force)
	if errors.Is(err, cms.ErrElsewhere) {
		out.Skipped = err.Error()
		return out, nil
	}
	if err != nil {
		return out, err
	}
	done, err := w.done(ctx)
	if err != nil {
		return out, err
	}
	if done {
		out.Skipped = "already processed, and nothing changed"
		return out, nil
	}
	release, err := h.guard.place(ctx)
	if err != nil {
		return out, err
	}
	defer release()
	if err := h.read(ctx, w); errors.Is(err, picture.ErrUnsupported) {
		out.Skipped = err.Error()
		return out, nil
	} else if err != nil {
		return out, err
	}
	if err := h.applyWatermark(ctx, w); err != nil {
		return out, err
	}
	return h.make(ctx, w, out)
}

// notForUs says why a row gets no thumbnails, "" when it gets some.
func notForUs(file cms.MediaFile) string {
	mime := strings.ToLower(file.MIME)
	switch {
	case !strings.HasPrefix(mime, "image/"):
		return "not a picture: " + file.MIME
	case strings.Contains(mime, "svg"), strings.Contains(mime, "icon"):
		return "pictures of type " + file.MIME + " need no thumbnails"
	case file.Private:
		return "the file is private"
	}
	return ""
}

// look finds the original and what is known of it, without reading it.
func (h *Handler) look(ctx context.Context, p plan, file cms.MediaFile, force bool) (*work, error) {
	store, err := h.store(ctx, p.place)
	if err != nil {
		return nil, err
	}
	name, info, err := original(ctx, store, p.place, file.URL)
	if err != nil {
		return nil, err
	}
	if info.Size > h.Options.Limits.FileBytes {
		return nil, fmt.Errorf("%w: %d bytes are more than %d", picture.ErrTooLarge, info.Size,
			h.Options.Limits.FileBytes)
	}
	w := &work{plan: p, file: file, name: name, store: store, modified: info.Modified, force: force}
	w.source = Source{Size: info.Size, Modified: info.Modified.UTC().Truncate(time.Second)}
	w.record, w.known = ReadRecord(file.Options)
	return w, nil
}

// read reads the original and judges its header.
func (h *Handler) read(ctx context.Context, w *work) error {
	data, err := readAll(ctx, w.store, w.plan.place.Key(w.name.File), h.Options.Limits.FileBytes)
	if err != nil {
		return fmt.Errorf("reading the original: %w", err)
	}
	w.data = data
	if w.header, err = picture.Inspect(w.data); err == nil {
		err = w.maker(h.Options).Check(w.header)
	}
	return err
}

// make renders what is missing, writes the files and then the record.
func (h *Handler) make(ctx context.Context, w *work, out Outcome) (Outcome, error) {
	record := w.newRecord(h.now())
	missing, err := w.sortOut(ctx, &record)
	if err != nil {
		return out, err
	}
	free, err := h.guard.take(ctx, cost(w.header, int64(len(w.data))))
	if err != nil {
		return out, err
	}
	defer free()
	result, err := w.render(ctx, h.Options, missing)
	if err != nil {
		return out, err
	}
	for _, r := range result.Renditions {
		if err := w.put(ctx, missing[r.Spec], r, &record); err != nil {
			return out, err
		}
	}
	if err := record.preview(result.Preview); err != nil {
		return out, err
	}
	if err := h.Site.SetMediaOption(ctx, w.file.ID, recordKey, record); err != nil {
		return out, err
	}
	for _, want := range missing {
		if record.Sizes[want.size].NotKept {
			out.NotKept++
		}
	}
	out.Made, out.Kept, out.Partial = len(missing)-out.NotKept, len(record.Sizes)-len(missing), record.Partial
	return out, nil
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
