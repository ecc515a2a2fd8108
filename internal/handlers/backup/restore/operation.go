package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/archive"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

// operation is one restore of the site: everything is loaded beside what is there, and
// then exchanged.
type operation struct {
	*Restorer
	q     Request
	e     *entry
	place place // nil where the site's database stays
	done  *Result
}

// restoreSite restores into the site. Its error says whether anything was changed.
func (r *Restorer) restoreSite(ctx context.Context, q Request, progress func(catalog.Step), done *Result) error {
	safety := ""
	if done.Safety != nil {
		safety = done.Safety.ID
	}
	e, err := r.begin(ctx, q, safety)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	o := &operation{Restorer: r, q: q, e: e, done: done}
	if o.place, err = r.placeOf(e); err == nil {
		err = o.load(ctx, progress)
	}
	if err != nil {
		return o.unchanged(ctx, err)
	}
	if o.place == nil || o.place.late() {
		if err := r.enter(ctx, e, ready); err != nil {
			return o.unchanged(ctx, err)
		}
	}
	if err := o.exchange(ctx); err != nil {
		return err
	}
	problems, err := r.finish(context.WithoutCancel(ctx), e)
	done.Problems = append(done.Problems, problems...)
	return err
}

// load writes everything beside what is there.
func (o *operation) load(ctx context.Context, progress func(catalog.Step)) (err error) {
	w := writer{request: o.q, done: o.done}
	defer func() { err = errors.Join(err, w.close(err == nil)) }()
	switch {
	case o.place != nil:
		w.load, err = o.place.load(ctx, o.q)
		w.kept = true // ready closes it
	case o.q.Database:
		w.load, err = o.openTarget(ctx, o.q)
	}
	if err != nil {
		return err
	}
	if w.files, err = o.fileTarget(o.q); err != nil {
		return err
	}
	if o.q.inPlaceFiles() {
		w.batch = o.e.ID
		if err := o.eachSet(o.e, func(s stager) error { return s.Prepare(ctx, o.e.ID) }); err != nil {
			return err
		}
	}
	if err := o.read(ctx, &w, progress); err != nil {
		return err
	}
	if o.q.Database {
		o.done.Tables = len(o.done.Plan.Tables)
	}
	if o.place == nil {
		return nil
	}
	problems, err := o.place.ready(ctx, w.manifest)
	if err != nil || len(problems) == 0 {
		return err
	}
	if o.q.AllowFailed {
		o.done.Problems = append(o.done.Problems, problems...)
		return nil
	}
	return fmt.Errorf("%w: what was loaded is not what was saved: %s", manifest.ErrUnverified,
		strings.Join(problems, "; "))
}

// read shows the writer what is restored.
func (o *operation) read(ctx context.Context, w *writer, progress func(catalog.Step)) error {
	if o.q.contents == nil {
		return o.config.Catalog.Read(ctx, o.q.Backup, progress, func(e archive.Entry, content io.Reader) error {
			return w.entry(ctx, e, content)
		})
	}
	summary, err := o.q.contents(ctx, w.load.Load)
	w.manifest = &manifest.Manifest{Dump: &summary}
	return err
}

// exchange puts what was loaded in the place of what is there.
func (o *operation) exchange(ctx context.Context) error {
	if o.place != nil {
		if err := o.place.exchange(ctx); err != nil {
			return o.judge(ctx, err)
		}
	}
	return o.enter(context.WithoutCancel(ctx), o.e, exchanged)
}

// judge looks what became of an exchange that ended with an error.
func (o *operation) judge(ctx context.Context, failed error) error {
	o.place.abort()
	ctx = context.WithoutCancel(ctx)
	is, err := o.happened(ctx, o.e)
	switch {
	case err != nil:
		return fmt.Errorf("whether the site was changed is not known: %w: %w. When the database answers, run cmsjobs "+
			"backup restore --finish or --undo", failed, err)
	case !is:
		return o.unchanged(ctx, failed)
	}
	return o.enter(ctx, o.e, exchanged)
}

// unchanged removes what was loaded.
func (o *operation) unchanged(ctx context.Context, failed error) error {
	if o.place != nil {
		o.place.abort()
	}
	if ctx.Err() != nil {
		failed = context.Cause(ctx)
	}
	if err := o.undo(context.WithoutCancel(ctx), o.e); err != nil {
		return fmt.Errorf("nothing was changed: %w; what was loaded beside it is still there, run cmsjobs backup "+
			"restore --undo: %w", failed, err)
	}
	return fmt.Errorf("nothing was changed: %w", failed)
}
