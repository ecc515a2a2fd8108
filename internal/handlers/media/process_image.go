package media

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// Register makes r run media.processImage here.
func (h *Handler) Register(r *jobs.Registry) {
	jobs.Handle(r, ProcessImage, h.processImage)
	jobs.Results[Outcome](r, ProcessImage)
}

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
