package analytics

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// recent are the days that a run without a range does again in a mapped table:
// it has no mark of what changed.
const recent = 2

// mappedDays marks the days of a range, or the last two, as changed.
func (h *Handler) mappedDays(ctx context.Context, r *DateRange) error {
	zone, err := h.Site.Zone(ctx)
	if err != nil {
		return err
	}
	now := h.Now().In(zone)
	since, until := now.AddDate(0, 0, 1-recent), now
	if r != nil {
		since, _ = time.Parse(time.DateOnly, r.Start) // checked by Validate
		until, _ = time.Parse(time.DateOnly, r.End)
	}
	if until.Sub(since) > maxReportDays*24*time.Hour {
		return jobs.Permanent(fmt.Errorf("a range may cover %d days at most", maxReportDays))
	}
	return database.InTx(ctx, h.DB, "marking days as changed", func(tx *sqlx.Tx) error {
		for day := since; day.Format(time.DateOnly) <= until.Format(time.DateOnly); day = day.AddDate(0, 0, 1) {
			if err := touch(ctx, tx, day.Format(time.DateOnly)); err != nil {
				return err
			}
		}
		return nil
	})
}

// column reads a mapped column as text, or as nothing.
func (m *Mapping) column(name string) string {
	if name == "" {
		return "''"
	}
	return "COALESCE(" + name + ", '')"
}

// feedMapped streams a day of the mapped table, ordered by visitor and time.
func (h *Handler) feedMapped(ctx context.Context, day string, t viewSink) (bad int64, err error) {
	m, db := h.Mapped, h.Site.DB
	zone, err := h.Site.Zone(ctx)
	if err != nil {
		return 0, err
	}
	from, to, numeric, err := h.mappedBounds(ctx, day, zone)
	if err != nil {
		return 0, err
	}
	order := m.Visitor
	if order == "" {
		order = strings.TrimSuffix(m.Address+", "+m.Agent, ", ")
	}
	query := fmt.Sprintf("SELECT %s, %s, %s, %s, %s, %s, %s, %s, %s FROM %s WHERE %s >= ? AND %s < ? ORDER BY %s, %s",
		m.At, m.column(m.Visitor), m.column(m.Address),
		m.column(m.Agent), m.column(m.Path), m.column(m.Referrer), m.column(m.Country), m.column(m.Campaign),
		m.column(m.Site), m.Table, m.At, m.At, order, m.At)
	rows, err := db.QueryContext(ctx, db.Rebind(query), from, to)
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", m.Table, err)
	}
	defer rows.Close()
	for rows.Next() {
		r, err := h.mappedRow(rows, day, zone, numeric)
		if err != nil {
			bad++
			continue
		}
		t.add(&r)
	}
	return bad, rows.Err()
}

// mappedBounds are the first moment of a day and of the next, as the column
// has them.
func (h *Handler) mappedBounds(ctx context.Context, day string, zone *time.Location) (from, to any, numeric bool,
	err error) {
	start, err := time.ParseInLocation(time.DateOnly, day, zone)
	if err != nil {
		return nil, nil, false, err
	}
	end := start.AddDate(0, 0, 1)
	columns, err := columnTypes(ctx, h.Site.DB, h.Mapped.Table)
	if err != nil {
		return nil, nil, false, err
	}
	kind := columns[strings.ToLower(h.Mapped.At)]
	if kind == "" {
		return nil, nil, false, fmt.Errorf("the table %s has no column %s: fix analytics.mapped in the configuration",
			h.Mapped.Table, h.Mapped.At)
	}
	if strings.Contains(kind, "int") {
		return start.Unix(), end.Unix(), true, nil
	}
	return start.Format(time.DateTime), end.Format(time.DateTime), false, nil
}

// columnTypes looks up the columns of a table that is named whole, prefix
// included (cms.Site.Columns puts the CMS's prefix before a name).
func columnTypes(ctx context.Context, db *sqlx.DB, table string) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT * FROM "+table+" WHERE 1 = 0")
	if err != nil {
		return nil, fmt.Errorf("looking at the table %s: %w", table, err)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, c := range types {
		found[strings.ToLower(c.Name())] = strings.ToLower(c.DatabaseTypeName())
	}
	return found, rows.Err()
}

// mappedRow turns a row of the mapped table into one of ours.
func (h *Handler) mappedRow(rows *sql.Rows, day string, zone *time.Location, numeric bool) (row, error) {
	var at any
	var who, address, agent, path, referrer, country, campaign, site string
	if err := rows.Scan(&at, &who, &address, &agent, &path, &referrer, &country, &campaign, &site); err != nil {
		return row{}, err
	}
	moment, err := mappedTime(at, zone, numeric)
	if err != nil {
		return row{}, err
	}
	if who == "" {
		who = address + "\x00" + agent
	}
	r := row{day: day, at: moment.UnixMilli(), site: cleanHost(site), path: cleanPath(path),
		country: clean(country, 2), campaign: clean(campaign, 191), kind: kindView}
	if r.site == "" {
		r.site = h.ownHost()
	}
	sum := sha256.Sum256([]byte(who))
	copy(r.visitor[:], sum[:])
	r.referrer = referrerGroup(referrer, r.site)
	if agent != "" {
		c := h.agents.read(agent)
		r.device, r.browser, r.os = c.device, c.browser, c.os
		if c.bot {
			r.kind = kindBot
		}
	}
	if h.spam.has(referrer) {
		r.kind = kindSpam
	}
	return r, nil
}

// mappedTime reads a moment: a number of seconds, or a wall-clock text in the
// CMS's zone, which some drivers hand over as a time in UTC.
func mappedTime(at any, zone *time.Location, numeric bool) (time.Time, error) {
	switch v := at.(type) {
	case int64:
		if numeric {
			return time.Unix(v, 0), nil
		}
	case time.Time:
		return time.Date(v.Year(), v.Month(), v.Day(), v.Hour(), v.Minute(), v.Second(), 0, zone), nil
	case string:
		return time.ParseInLocation(time.DateTime, strings.TrimSuffix(strings.Replace(v, "T", " ", 1), "Z"), zone)
	case []byte:
		return time.ParseInLocation(time.DateTime, string(v), zone)
	}
	return time.Time{}, errors.New("the row has no time")
}
