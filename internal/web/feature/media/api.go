package media

import (
	"context"
	"fmt"
	"net/http"

	"github.com/cmsjobs/cmsjobs/internal/answers"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

func (h handlers) mediaStatus(r *web.Request) error {
	status, err := h.port.MediaStatus(r.Ctx())
	if err != nil {
		return fmt.Errorf("counting pictures: %w", err)
	}
	return r.JSON(http.StatusOK, status)
}

// RegenerateRequest says for which pictures.
type RegenerateRequest struct {
	OnlyMissing bool `json:"only_missing,omitempty"`
}

func (h handlers) regenerate(r *web.Request) error {
	var request RegenerateRequest
	if err := r.Decode(&request); err != nil {
		return err
	}
	if err := r.MayRunType(mediaType); err != nil {
		return err
	}
	n, err := h.port.Regenerate(r.Ctx(), request.OnlyMissing)
	if err != nil {
		return fmt.Errorf("enqueuing thumbnails: %w", err)
	}
	r.Audit("", fmt.Sprintf("%d pictures", n))
	return r.JSON(http.StatusOK, web.Affected{Changed: int64(n)})
}

// warm counts pictures ahead of the first person.
func (h handlers) warm(ctx context.Context, _ web.Config, cache *answers.Cache) error {
	if h.port == nil {
		return nil
	}
	_, err := answers.Await(ctx, cache, "media", h.port.MediaStatus)
	return err
}
