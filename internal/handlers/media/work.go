package media

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

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
		if w.record.Sizes[want.size].NotKept {
			continue
		}
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
		if known := w.record.Sizes[want.size]; known.NotKept && w.current() && !w.force {
			record.Sizes[want.size] = known
			continue
		}
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

// put writes a rendition. A copy in another format is there to save bytes: one that saves
// none is not kept, nor is the one that an earlier original may have left. The rendition that it is a
// copy of comes before it.
func (w *work) put(ctx context.Context, want wanted, r picture.Rendition, record *Record) error {
	if of, isCopy := record.Sizes[want.of]; isCopy && len(r.Data) >= of.Bytes {
		if err := w.store.Delete(ctx, w.plan.place.Key(want.url)); err != nil && !errors.Is(err, storage.ErrNotFound) {
			return fmt.Errorf("removing %s, which is larger than what it is a copy of: %w", want.url, err)
		}
		record.Sizes[want.size] = RenditionRecord{Width: r.Width, Height: r.Height, MIME: r.Format.MIME(),
			NotKept: true}
		return nil
	}
	o := storage.PutOptions{ContentType: r.Format.MIME(), ExpectedSize: int64(len(r.Data)), Public: true}
	if err := w.store.Put(ctx, w.plan.place.Key(want.url), bytes.NewReader(r.Data), o); err != nil {
		return fmt.Errorf("writing %s: %w", want.url, err)
	}
	record.Sizes[want.size] = RenditionRecord{URL: want.url, Width: r.Width, Height: r.Height, Bytes: len(r.Data),
		MIME: r.Format.MIME()}
	return nil
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

// Outcome is the result of a job: what was made, or why nothing was.
type Outcome struct {
	ID      string `json:"id"`
	URL     string `json:"url"`
	Skipped string `json:"skipped,omitempty"`
	Made    int    `json:"made"`
	// Kept counts renditions that were there already and newer than the original.
	Kept int `json:"kept,omitempty"`
	// NotKept counts copies in other formats that would save no bytes; Made has them not.
	NotKept int  `json:"not_kept,omitempty"`
	Partial bool `json:"partial,omitempty"`
}

// Summary implements jobs.Summarizer.
func (o Outcome) Summary() (s phrase.Summary) {
	if o.Skipped != "" {
		s.Say("Nothing was made of %s: %s.", o.URL, o.Skipped)
		return s
	}
	s.Say("Made %s {rendition|renditions} of %s.", o.Made, o.URL)
	phrase.Count(&s, o.Kept, "%s {was|were} there already.")
	phrase.Count(&s, o.NotKept, "%s {copy|copies} in another format would be larger and {is|are} not kept.")
	if o.Partial {
		s.Say("The file ends early: part of the picture is missing.")
	}
	return s
}
