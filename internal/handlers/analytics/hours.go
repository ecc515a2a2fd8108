package analytics

import (
	"context"
	"fmt"
	"time"
)

// Hour is one hour of the CMS's clock.
type Hour struct {
	Hour string `json:"hour" db:"-"` // its first moment, by RFC 3339
	Figures
	At int64 `json:"-" db:"hour"` // the same in Unix seconds
}

// hoursOf are the hours of a day, which has 23 or 25 where the clock is changed.
func hoursOf(day string, zone *time.Location) ([]Hour, error) {
	first, err := time.ParseInLocation(time.DateOnly, day, zone)
	if err != nil {
		return nil, err
	}
	var hours []Hour
	for at := first; at.Before(first.AddDate(0, 0, 1)); at = at.Add(time.Hour) {
		hours = append(hours, Hour{Hour: at.Format(time.RFC3339), At: at.Unix()})
	}
	return hours, nil
}

// fillHours reads the figures of the hours of a day of all visits.
func (h *Handler) fillHours(ctx context.Context, q ReportQuery, hours []Hour) error {
	query, args := "SELECT hour, SUM(views) AS views, SUM(visitors) AS visitors, SUM(visits) AS visits, SUM(bounces) "+
		"AS bounces, SUM(time_ms) AS time_ms FROM cmsjobs_analytics_hourly WHERE day = ?", []any{q.Since}
	if q.Site != "" {
		query, args = query+" AND site = ?", append(args, q.Site)
	}
	var found []Hour
	if err := h.DB.SelectContext(ctx, &found, h.DB.Rebind(query+" GROUP BY hour"), args...); err != nil {
		return fmt.Errorf("reading the figures of the hours: %w", err)
	}
	for _, f := range found {
		addHour(hours, f.At, f.Figures)
	}
	return nil
}

// addHours adds the hours of a tally.
func (t *tally) addHours(hours []Hour) {
	for k, f := range t.hourly {
		addHour(hours, k.hour, f.public())
	}
}

func addHour(hours []Hour, at int64, f Figures) {
	for i := range hours {
		if hours[i].At == at {
			hours[i].Figures = hours[i].plus(f).rates(dimTotal)
		}
	}
}
