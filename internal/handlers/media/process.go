package media

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Outcome is the result of a job: what was made, or why nothing was.
type Outcome struct {
	ID      string `json:"id"`
	URL     string `json:"url"`
	Skipped string `json:"skipped,omitempty"`
	Made    int    `json:"made"`
	// Kept counts renditions that were there already and newer than the original.
	Kept    int  `json:"kept,omitempty"`
	Partial bool `json:"partial,omitempty"`
}

// work is one picture on its way through a job.
type work struct {
	plan     plan
	file     cms.MediaFile
	name     cms.MediaName // of the original
	store    storage.Store
	modified time.Time // of the original, as the store says it
	source   Source
	record   Record // what is known already
	known    bool
	force    bool
	data     []byte
	header   picture.Header
}

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

// original finds a row's file, which may be named in several ways.
func original(ctx context.Context, store storage.Store, place cms.MediaPlace, url string) (
	cms.MediaName, storage.Info, error) {
	names, err := place.Names(url)
	if err != nil {
		return cms.MediaName{}, storage.Info{}, err
	}
	for _, name := range names {
		info, err := store.Stat(ctx, place.Key(name.File))
		if err == nil {
			return name, info, nil
		}
		// A name that the store refuses may be a good one in another reading.
		if !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrKey) {
			return cms.MediaName{}, info, fmt.Errorf("looking for the original: %w", err)
		}
	}
	return cms.MediaName{}, storage.Info{}, fmt.Errorf("%w in %s", storage.ErrNotFound,
		cmp.Or(place.Folder, place.Bucket.String()))
}

// current says whether the record is of this original and this plan.
func (w *work) current() bool {
	return w.known && w.record.Source == w.source && w.record.Plan == w.plan.digest() && w.record.Error == ""
}

// done says whether there is nothing to do: same original, same plan, and all
// files are there.
func (w *work) done(ctx context.Context) (bool, error) {
	if w.force || !w.current() {
		return false, nil
	}
	for _, want := range w.plan.renditions(w.name.Page, w.record.Width, focusOf(w.file.Options)) {
		if _, there, err := w.stat(ctx, want.url); err != nil || !there {
			return false, err
		}
	}
	return true, nil
}

func (w *work) stat(ctx context.Context, url string) (info storage.Info, there bool, err error) {
	info, err = w.store.Stat(ctx, w.plan.place.Key(url))
	if errors.Is(err, storage.ErrNotFound) {
		return info, false, nil
	}
	if err != nil {
		return info, false, fmt.Errorf("looking for %s: %w", url, err)
	}
	return info, true, nil
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
	out.Made, out.Kept, out.Partial = len(missing), len(record.Sizes)-len(missing), record.Partial
	return out, nil
}

func (w *work) newRecord(at time.Time) Record {
	width, height := w.header.Size()
	return Record{Source: w.source, Plan: w.plan.digest(), Width: width, Height: height,
		Format: string(w.header.Format),
		Frames: w.header.Frames, Partial: w.header.Partial, Sizes: map[string]RenditionRecord{}, ProcessedAt: &at}
}

// sortOut tells what has to be made from what is there already. A file that is
// there counts when our record vouches for it, or, where we have none, when it
// is newer than the original: the CMS makes thumbnails too.
func (w *work) sortOut(ctx context.Context, record *Record) (missing []wanted, err error) {
	for _, want := range w.plan.renditions(w.name.Page, record.Width, focusOf(w.file.Options)) {
		info, there, err := w.stat(ctx, want.url)
		if err != nil {
			return nil, err
		}
		if there && !w.force && (w.current() || !w.known && !info.Modified.Before(w.modified)) {
			width, height, err := want.spec.Size(w.header)
			if err != nil {
				return nil, err
			}
			record.Sizes[want.size] = RenditionRecord{URL: want.url, Width: width, Height: height,
				Bytes: int(info.Size), MIME: w.format(want).MIME()}
			continue
		}
		missing = append(missing, want)
	}
	return missing, nil
}

func (w *work) format(want wanted) picture.Format {
	if want.format == "" {
		return w.header.Format
	}
	return want.format
}

// maker keeps to decoders that bound themselves where there is another process
// for all else.
func (w *work) maker(o Options) picture.Generator {
	return picture.Generator{Limits: o.Limits, Encoding: w.plan.encoding, Preview: w.plan.preview,
		Animations: w.plan.animations,
		Bounded:    o.Apart != nil}
}

func (w *work) render(ctx context.Context, o Options, missing []wanted) (picture.Result, error) {
	var specs []picture.Spec
	for _, want := range missing {
		spec := want.spec
		spec.Formats = []picture.Format{w.format(want)}
		specs = append(specs, spec)
	}
	maker := w.maker(o)
	result, err := maker.Render(ctx, w.data, specs)
	if errors.Is(err, picture.ErrUnbounded) {
		maker.Bounded = false
		return o.Apart.Render(ctx, maker, w.data, specs)
	}
	return result, err
}

func (w *work) put(ctx context.Context, want wanted, r picture.Rendition, record *Record) error {
	o := storage.PutOptions{ContentType: r.Format.MIME(), ExpectedSize: int64(len(r.Data)), Public: true}
	if err := w.store.Put(ctx, w.plan.place.Key(want.url), bytes.NewReader(r.Data), o); err != nil {
		return fmt.Errorf("writing %s: %w", want.url, err)
	}
	record.Sizes[want.size] = RenditionRecord{URL: want.url, Width: r.Width, Height: r.Height, Bytes: len(r.Data),
		MIME: r.Format.MIME()}
	return nil
}
