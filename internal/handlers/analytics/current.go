package analytics

import (
	"context"
	"fmt"
	"time"
)

// currentFor is how long after their last view visitors count as being on the site.
const currentFor = 5 * time.Minute

// current counts the visitors of the last minutes; nil where single views are not ours.
func (h *Handler) current(ctx context.Context, site string, zone *time.Location) (*int64, error) {
	if h.Mapped != nil {
		return nil, nil //nolint:nilnil // it is not known
	}
	now := h.Now()
	since := now.Add(-currentFor)
	query := "SELECT COUNT(DISTINCT visitor) FROM cmsjobs_page_views WHERE day IN (?, ?) AND at >= ? AND " +
		"at <= ? AND kind = ?"
	args := []any{since.In(zone).Format(time.DateOnly), now.In(zone).Format(time.DateOnly), since.UnixMilli(),
		now.UnixMilli(), kindView}
	if site != "" {
		query, args = query+" AND site = ?", append(args, site)
	}
	var n int64
	if err := h.DB.GetContext(ctx, &n, h.DB.Rebind(query), args...); err != nil {
		return nil, fmt.Errorf("counting the present visitors: %w", err)
	}
	return &n, nil
}
