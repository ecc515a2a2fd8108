package backups

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/web"
)

// Recoverer is a Backups that also knows which moments of the database can be restored.
type Recoverer interface {
	// Moments are spans of time, oldest first; none where the database has no log that is
	// archived.
	Moments(ctx context.Context) ([]Moments, error)
}

// Moments is a span of time: each second of it can be restored.
type Moments struct {
	Destination string    `json:"destination"`
	From        time.Time `json:"from"`
	Until       time.Time `json:"until"`
	Bytes       int64     `json:"bytes"` // that the archived log takes there
	// Missing says why nothing later can be restored, where something is wrong.
	Missing string `json:"missing,omitempty"`
}

// MomentList is what can be restored.
type MomentList struct {
	Items []Moments `json:"items"`
}

func (h handlers) listMoments(r *web.Request) error {
	list, err := h.moments(r.Ctx())
	if err != nil {
		return fmt.Errorf("looking which moments can be restored: %w", err)
	}
	view := r.View()
	for i := range list.Items {
		list.Items[i].Missing = view.Text(list.Items[i].Missing)
	}
	return r.JSON(http.StatusOK, list)
}

func (h handlers) moments(ctx context.Context) (MomentList, error) {
	list := MomentList{Items: []Moments{}}
	recovers, can := h.port.(Recoverer)
	if !can {
		return list, nil
	}
	found, err := recovers.Moments(ctx)
	list.Items = append(list.Items, found...)
	return list, err
}
