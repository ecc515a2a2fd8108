package analytics

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// Processed is what a roll-up did; it is the job's result.
type Processed struct {
	Days    int      `json:"days"`
	Views   int64    `json:"views"`
	BadRows int64    `json:"badRows,omitempty"`
	Pruned  int64    `json:"pruned,omitempty"`
	Failed  []string `json:"failed,omitempty"` // days that could not be done, with the reason
	DryRun  bool     `json:"dryRun,omitempty"`
}

// Process rolls up the days of a range, or those that changed. A day that
// fails is named and the others go on; the error comes at the end.
func (h *Handler) Process(ctx context.Context, p ProcessPayload) (Processed, error) {
	if h.Mapped != nil && !p.DryRun {
		if err := h.mappedDays(ctx, p.DateRange); err != nil {
			return Processed{}, fmt.Errorf("marking the days of %s: %w", h.Mapped.Table, err)
		}
	}
	days, err := h.due(ctx, p)
	if err != nil {
		return Processed{}, err
	}
	done := Processed{DryRun: p.DryRun}
	if p.DryRun {
		done.Days = len(days)
		return done, nil
	}
	var last error
	for i, day := range days {
		jobs.Report(ctx, int64(i), int64(len(days)), day)
		views, bad, err := h.rollUp(ctx, day)
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		if err != nil {
			jobs.Logf(ctx, "%s could not be rolled up: %v", day, err)
			done.Failed, last = append(done.Failed, day), err
			continue
		}
		done.Days, done.Views, done.BadRows = done.Days+1, done.Views+views, done.BadRows+bad
	}
	if last != nil {
		return done, fmt.Errorf("%d of %d days could not be rolled up (%s): %w", len(done.Failed), len(days),
			strings.Join(done.Failed, ", "), last)
	}
	if h.CountPostViews {
		n, err := h.countPostViews(ctx)
		if done.Views += n; err != nil {
			return done, err
		}
	}
	if done.Pruned, err = h.prune(ctx); err != nil {
		return done, err
	}
	return done, h.salts.destroy(ctx)
}

// due lists the days to roll up, oldest first.
func (h *Handler) due(ctx context.Context, p ProcessPayload) ([]string, error) {
	var days []string
	query, args := "SELECT day FROM cmsjobs_analytics_days WHERE rolled < version OR version >= 0 AND goals <> ? "+
		"ORDER BY day", []any{h.goals.digest()}
	if p.DateRange != nil {
		query, args = "SELECT day FROM cmsjobs_analytics_days WHERE day BETWEEN ? AND ? AND version >= 0 ORDER BY day",
			[]any{p.DateRange.Start, p.DateRange.End}
	}
	if err := h.DB.SelectContext(ctx, &days, h.DB.Rebind(query), args...); err != nil {
		return nil, fmt.Errorf("finding the days to roll up: %w", err)
	}
	return days, nil
}

// rollUp counts one day again and replaces its figures. The version is read
// before the rows: what is written stands for at least that version. Of two
// roll-ups at once the later version stays.
func (h *Handler) rollUp(ctx context.Context, day string) (views, bad int64, err error) {
	var version int64
	if err := h.DB.GetContext(ctx, &version, h.DB.Rebind("SELECT version FROM cmsjobs_analytics_days WHERE day = ?"),
		day); err != nil {
		return 0, 0, fmt.Errorf("reading the version of %s: %w", day, err)
	}
	zone, err := h.Site.Zone(ctx)
	if err != nil {
		return 0, 0, err
	}
	t := newTally(h.goals, zone)
	if bad, err = h.read(ctx, day, t); err != nil {
		return 0, 0, err
	}
	t.endVisit()
	if err := h.replace(ctx, day, version, bad, t); err != nil {
		return 0, 0, err
	}
	for k, f := range t.daily {
		if k.dimension == dimTotal {
			views += f.views
		}
	}
	return views, bad, nil
}

// read streams a day's views and events, ordered by visitor and time.
func (h *Handler) read(ctx context.Context, day string, t viewSink) (bad int64, err error) {
	if h.Mapped != nil {
		return h.feedMapped(ctx, day, t)
	}
	return h.feed(ctx, day, t)
}

// feed streams those of cmsjobs_page_views.
func (h *Handler) feed(ctx context.Context, day string, t viewSink) (bad int64, err error) {
	rows, err := h.DB.QueryContext(ctx, h.DB.Rebind("SELECT visitor, at, site, path, referrer, device, browser, "+
		"os, country, campaign, term, content, event, kind FROM cmsjobs_page_views WHERE day = ? "+
		"ORDER BY day, visitor, at, nonce"), day)
	if err != nil {
		return 0, fmt.Errorf("reading the page views of %s: %w", day, err)
	}
	defer rows.Close()
	in := newInterner()
	var who sql.RawBytes
	var text [12]sql.RawBytes
	into := []any{&who, nil}
	for i := range text {
		into = append(into, &text[i])
	}
	r := row{day: day}
	into[1] = &r.at
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return bad, fmt.Errorf("reading the page views of %s: %w", day, err)
		}
		if len(who) != len(r.visitor) || len(text[0]) == 0 || len(text[1]) == 0 || r.at <= 0 {
			bad++
			continue
		}
		copy(r.visitor[:], who)
		for i, field := range [...]*string{&r.site, &r.path, &r.referrer, &r.device, &r.browser, &r.os, &r.country,
			&r.campaign, &r.term, &r.content, &r.event, &r.kind} {
			*field = in.of(text[i])
		}
		t.add(&r)
	}
	if err := rows.Err(); err != nil {
		return bad, fmt.Errorf("reading the page views of %s: %w", day, err)
	}
	return bad, nil
}

// interner keeps one copy of each text that comes again and again.
type interner map[string]string

func newInterner() interner { return interner{} }

func (in interner) of(b []byte) string {
	if s, ok := in[string(b)]; ok {
		return s
	}
	s := string(b)
	in[s] = s
	return s
}

// replace puts a day's figures in the place of the old ones, unless another
// roll-up wrote a later version meanwhile.
func (h *Handler) replace(ctx context.Context, day string, version, bad int64, t *tally) error {
	return database.InTx(ctx, h.DB, "storing the figures of "+day, func(tx *sqlx.Tx) error {
		return h.replaceIn(ctx, tx, day, version, bad, t)
	})
}

func (h *Handler) replaceIn(ctx context.Context, tx *sqlx.Tx, day string, version, bad int64, t *tally) error {
	won, err := tx.ExecContext(ctx, tx.Rebind("UPDATE cmsjobs_analytics_days SET rolled = ?, goals = ?, "+
		"rolled_at = ?, bad_rows = ? WHERE day = ? AND rolled <= ? AND version >= 0"),
		version, t.goals.digest(), h.Now().Unix(), bad, day, version)
	if err != nil {
		return err
	}
	if n, err := won.RowsAffected(); err != nil || n == 0 {
		return err // a later version is there already, or the day was closed
	}
	for _, table := range []string{"cmsjobs_analytics_daily", "cmsjobs_analytics_hourly"} {
		if _, err := tx.ExecContext(ctx, tx.Rebind("DELETE FROM "+table+" WHERE day = ?"), day); err != nil {
			return err
		}
	}
	if err := insertDaily(ctx, tx, day, t); err != nil {
		return err
	}
	return insertHourly(ctx, tx, day, t)
}

func insertDaily(ctx context.Context, tx *sqlx.Tx, day string, t *tally) error {
	keys := make([]key, 0, len(t.daily))
	for k := range t.daily {
		keys = append(keys, k)
	}
	// In the order of the table's key: pages fill up, and equal runs write equal tables.
	slices.SortFunc(keys, func(a, b key) int {
		return strings.Compare(a.site+"\x00"+a.dimension+"\x00"+a.name, b.site+"\x00"+b.dimension+"\x00"+b.name)
	})
	for part := range slices.Chunk(keys, rowsPerInsert) {
		args := make([]any, 0, 10*len(part))
		for _, k := range part {
			f := t.daily[k]
			args = append(args, k.site, day, k.dimension, k.name, f.views, f.visitors, f.visits, f.bounces, f.timeMS,
				f.timed)
		}
		query := "INSERT INTO cmsjobs_analytics_daily (site, day, dimension, name, views, visitors, visits, bounces, " +
			"time_ms, timed) VALUES " +
			database.Rows("("+database.Marks(10)+")", len(part))
		if _, err := tx.ExecContext(ctx, tx.Rebind(query), args...); err != nil {
			return err
		}
	}
	return nil
}

func insertHourly(ctx context.Context, tx *sqlx.Tx, day string, t *tally) error {
	for k, f := range t.hourly {
		_, err := tx.ExecContext(ctx, tx.Rebind("INSERT INTO cmsjobs_analytics_hourly (site, day, hour, views, "+
			"visitors, visits, bounces, time_ms) VALUES (?,?,?,?,?,?,?,?)"),
			k.site, day, k.hour, f.views, f.visitors, f.visits, f.bounces, f.timeMS)
		if err != nil {
			return err
		}
	}
	return nil
}

// Summary implements jobs.Summarizer.
func (p Processed) Summary() (s phrase.Summary) {
	if p.DryRun {
		s.Say("A dry run: nothing was changed.")
	}
	s.Say("%s {day|days} with %s {view|views} rolled up.", p.Days, p.Views)
	phrase.Count(&s, p.BadRows, "%s {row|rows} could not be read.")
	phrase.Count(&s, p.Pruned, "%s old {row was|rows were} removed.")
	phrase.Count(&s, len(p.Failed), "%s {day|days} failed.")
	phrase.Lines(&s, phrase.Columns("Day that failed"), p.Failed)
	return s
}
