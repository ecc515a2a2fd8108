package media

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/cmsjobs/cmsjobs/internal/cms"
)

// page is how many rows are read at once.
const page = 200

// RegenerateOptions choose the pictures.
type RegenerateOptions struct {
	Filter cms.MediaFilter
	// OnlyMissing makes what is missing or out of date; otherwise everything is
	// made again.
	OnlyMissing bool
}

// Progress is how far a regeneration is. Last is the id up to which all rows
// are done: to go on after an interruption give it as Filter.After.
type Progress struct {
	Done, Total           int64
	Made, Skipped, Failed int64
	Last                  string
	// Err and URL are of the row that was just done; Err is nil for a good one, and
	// does not name the URL.
	Err error
	URL string
}

// Regenerate makes the renditions of all chosen pictures, here and now, two or
// more at a time as Options.AtOnce says. Pictures that fail are reported,
// marked, and do not stop the others. progress is called after each row, never
// by two goroutines at once. The error is that of the database or the context.
func (h *Handler) Regenerate(ctx context.Context, o RegenerateOptions, progress func(Progress)) (Progress, error) {
	var p Progress
	plan, err := h.plan(ctx)
	if err != nil {
		return p, err
	}
	if p.Total, err = h.Site.CountMediaFiles(ctx, o.Filter); err != nil {
		return p, err
	}
	for filter := o.Filter; ; {
		rows, err := h.Site.MediaFiles(ctx, filter, page)
		if err != nil || len(rows) == 0 {
			return p, err
		}
		if err := h.regeneratePage(ctx, plan, rows, !o.OnlyMissing, &p, progress); err != nil {
			return p, err
		}
		filter.After = rows[len(rows)-1].ID
	}
}

// done is the end of one row.
type done struct {
	index   int
	outcome Outcome
	err     error
}

func (h *Handler) regeneratePage(ctx context.Context, plan plan, rows []cms.MediaFile, force bool, p *Progress,
	progress func(Progress)) error {
	ends := make(chan done, len(rows))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(h.Options.AtOnce)
	go func() {
		for i, row := range rows {
			group.Go(func() error {
				outcome, err := h.one(groupCtx, plan, row, force)
				ends <- done{i, outcome, err}
				return context.Cause(groupCtx)
			})
		}
		_ = group.Wait() // each row's error is in its end
		close(ends)
	}()
	finished, next := make([]bool, len(rows)), 0
	for end := range ends {
		if ctx.Err() != nil {
			continue
		}
		p.Done++
		switch {
		case end.err != nil:
			p.Failed++
		case end.outcome.Skipped != "":
			p.Skipped++
		default:
			p.Made++
		}
		for finished[end.index] = true; next < len(rows) && finished[next]; next++ {
			p.Last = rows[next].ID
		}
		p.Err, p.URL = end.err, rows[end.index].URL
		progress(*p)
	}
	return context.Cause(ctx)
}

// one processes a row and marks it where that fails.
func (h *Handler) one(ctx context.Context, plan plan, row cms.MediaFile, force bool) (Outcome, error) {
	out, err := h.process(ctx, plan, row, force)
	if err != nil && ctx.Err() == nil {
		err = errors.Join(err, h.flag(ctx, row, err))
	}
	return out, err
}
