package media

import (
	"context"
	"errors"
	"fmt"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// CheckOptions say what Check may do beyond looking.
type CheckOptions struct {
	// Remove deletes orphans. Without it nothing is changed.
	Remove bool
	// Unwanted counts thumbnails of existing pictures in sizes that are not
	// wanted now as orphans too.
	Unwanted bool
}

// Check compares the rows with the files. It only looks, unless o.Remove.
// progress is called now and then with the number of rows seen.
func (h *Handler) Check(ctx context.Context, o CheckOptions, progress func(done, total int64)) (Report, error) {
	var report Report
	plan, err := h.plan(ctx)
	if err != nil {
		return report, err
	}
	store, err := h.store(ctx, plan.place)
	if err != nil {
		return report, err
	}
	files := map[string]int64{}
	for info, err := range store.List(ctx, plan.place.KeyPrefix) {
		if err != nil {
			return report, fmt.Errorf("listing the uploads: %w", err)
		}
		files[info.Key] = info.Size
	}
	c := checker{plan: plan, files: files, needed: map[string]bool{}, originals: map[string]bool{}, report: &report}
	if err := h.eachRow(ctx, cms.MediaFilter{}, c.row, progress); err != nil {
		return report, err
	}
	binned := func(file cms.MediaFile) {
		if name, _, err := c.original(file.URL); err == nil {
			c.originals[plan.place.Key(name.File)], c.originals[plan.place.Key(name.Page)] = true, true
		}
	}
	if err := h.eachRow(ctx, cms.MediaFilter{Bin: true}, binned, func(int64, int64) {}); err != nil {
		return report, err
	}
	c.orphans(o.Unwanted)
	if !o.Remove {
		return report, nil
	}
	return report, remove(ctx, store, &report)
}

func (h *Handler) eachRow(ctx context.Context, filter cms.MediaFilter, each func(cms.MediaFile),
	progress func(done, total int64)) error {
	total, err := h.Site.CountMediaFiles(ctx, filter)
	if err != nil {
		return err
	}
	for seen := int64(0); ; {
		rows, err := h.Site.MediaFiles(ctx, filter, page)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			each(row)
		}
		seen += int64(len(rows))
		progress(seen, total)
		filter.After = rows[len(rows)-1].ID
	}
}

func (c *checker) row(file cms.MediaFile) {
	name, there, err := c.original(file.URL)
	if errors.Is(err, cms.ErrOutside) && notForUs(file) == "" {
		c.report.Pictures++
		c.report.Lost = append(c.report.Lost, file.URL)
	}
	if err != nil {
		return // another site's
	}
	key := c.plan.place.Key(name.File)
	c.originals[key], c.needed[key] = true, true
	c.originals[c.plan.place.Key(name.Page)] = true
	record, _ := ReadRecord(file.Options)
	for _, r := range record.Sizes {
		if !r.NotKept {
			c.needed[c.plan.place.Key(r.URL)] = true
		}
	}
	if notForUs(file) != "" {
		return
	}
	c.report.Pictures++
	if !there {
		c.report.Lost = append(c.report.Lost, file.URL)
		return
	}
	for _, w := range c.plan.renditions(name.Page, record.Width, nil) {
		if record.Sizes[w.size].NotKept {
			continue
		}
		thumb := c.plan.place.Key(w.url)
		c.needed[thumb] = true
		if _, there := c.files[thumb]; !there {
			c.report.Missing = append(c.report.Missing, w.url)
		}
	}
}

// original is the name of a row's file, or the first that it may have where none
// is there.
func (c *checker) original(url string) (name cms.MediaName, there bool, err error) {
	names, err := c.plan.place.Names(url)
	if err != nil {
		return name, false, err
	}
	for _, name := range names {
		if _, there := c.files[c.plan.place.Key(name.File)]; there {
			return name, true, nil
		}
	}
	return names[0], false, nil
}

func remove(ctx context.Context, store storage.Store, report *Report) error {
	var errs []error
	for _, o := range report.Orphans {
		if err := store.Delete(ctx, o.Key); err != nil {
			errs = append(errs, fmt.Errorf("removing %s: %w", o.Key, err))
			continue
		}
		report.Removed++
	}
	return errors.Join(errs...)
}
