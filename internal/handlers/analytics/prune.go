package analytics

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// pruneStep is how many raw rows one statement removes: no lock is held long.
const pruneStep = 5000

// sealedVersion marks a day whose raw rows are gone. Its figures stay for
// good: rolling it up again from late rows would count those alone.
const sealedVersion = -1

// prune removes raw rows older than KeepRaw. Their days are sealed first, so
// that no roll-up sees a day of which a part is gone. A mapped table is its
// owner's, and keeps its days open.
func (h *Handler) prune(ctx context.Context) (int64, error) {
	if h.KeepRaw <= 0 || h.Mapped != nil {
		return 0, nil
	}
	before := h.Now().Add(-h.KeepRaw).UTC().Format(time.DateOnly)
	// A day that waits for its roll-up keeps its rows until it had it.
	_, err := h.DB.ExecContext(ctx, h.DB.Rebind("UPDATE cmsjobs_analytics_days SET version = ?, rolled = 0 WHERE day "+
		"< ? AND version >= 0 AND rolled >= version"), sealedVersion, before)
	if err != nil {
		return 0, fmt.Errorf("closing the days before %s: %w", before, err)
	}
	if before, err = h.firstOpen(ctx, before); err != nil {
		return 0, err
	}
	var total int64
	for {
		n, err := h.pruneChunk(ctx, before)
		total += n
		if err != nil {
			return total, fmt.Errorf("removing raw page views older than %s: %w", before, err)
		}
		if n < pruneStep {
			return total, nil
		}
	}
}

// firstOpen is the first day before limit that still needs its raw rows, else
// limit.
func (h *Handler) firstOpen(ctx context.Context, limit string) (string, error) {
	var day sql.NullString
	if err := h.DB.GetContext(ctx, &day, h.DB.Rebind("SELECT MIN(day) FROM cmsjobs_analytics_days WHERE day < ? AND "+
		"version >= 0"), limit); err != nil {
		return "", fmt.Errorf("finding the days whose views are still needed: %w", err)
	}
	if day.Valid {
		return day.String, nil
	}
	return limit, nil
}

func (h *Handler) pruneChunk(ctx context.Context, before string) (int64, error) {
	const key = "day, visitor, at, nonce"
	query := database.Of(h.DB).DeleteSome("cmsjobs_page_views", key, "day < ?", key, pruneStep)
	result, err := h.DB.ExecContext(ctx, h.DB.Rebind(query), before)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// lastSealed is the newest day whose raw rows are gone, "" when none are.
func (h *Handler) lastSealed(ctx context.Context) (string, error) {
	var day sql.NullString
	if err := h.DB.GetContext(ctx, &day, h.DB.Rebind("SELECT MAX(day) FROM cmsjobs_analytics_days WHERE version = ?"),
		sealedVersion); err != nil {
		return "", fmt.Errorf("finding the days that are closed: %w", err)
	}
	return day.String, nil
}

// keep stores rows but those that came too late: their day is closed. late
// says how many those were.
func (h *Handler) keep(ctx context.Context, rows []row) (late int64, err error) {
	sealed, err := h.lastSealed(ctx)
	if err != nil {
		return 0, err
	}
	open := rows[:0]
	for _, r := range rows {
		if r.day > sealed {
			open = append(open, r)
		}
	}
	late = int64(len(rows) - len(open))
	return late, write(ctx, h.DB, open)
}
