package analytics

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// countPostViews is the last resort of a site without any raw views: what
// posts.views grew by since the last run counts as today's views of the post.
// The CMS keeps no more than that: visitors, sources and devices stay unknown.
func (h *Handler) countPostViews(ctx context.Context) (int64, error) {
	columns, err := h.Site.Columns(ctx, "posts")
	if err != nil || columns["views"] == "" {
		return 0, err
	}
	var raw int64
	if err := h.DB.GetContext(ctx, &raw,
		"SELECT COUNT(*) FROM (SELECT 1 AS x FROM cmsjobs_page_views LIMIT 1) v"); err != nil || raw > 0 {
		return 0, err
	}
	zone, err := h.Site.Zone(ctx)
	if err != nil {
		return 0, err
	}
	day := h.Now().In(zone).Format(time.DateOnly)
	var total int64
	for after := ""; ; {
		posts, err := h.postCounters(ctx, after)
		if err != nil || len(posts) == 0 {
			return total, err
		}
		n, err := h.countDeltas(ctx, day, posts)
		total += n
		if err != nil {
			return total, err
		}
		after = posts[len(posts)-1].ID
	}
}

// postCounter is a post's counter as it stands.
type postCounter struct {
	ID    string `db:"id"`
	Views int64  `db:"views"`
}

const countersAtOnce = 1000

func (h *Handler) postCounters(ctx context.Context, after string) ([]postCounter, error) {
	var posts []postCounter
	query, args := "SELECT id, views FROM "+h.Site.Table("posts"), []any(nil)
	if after != "" {
		query, args = query+" WHERE id > ?", []any{after}
	}
	query += fmt.Sprintf(" ORDER BY id LIMIT %d", countersAtOnce)
	if err := h.Site.DB.SelectContext(ctx, &posts, h.Site.DB.Rebind(query), args...); err != nil {
		return nil, fmt.Errorf("reading the counters of posts: %w", err)
	}
	return posts, nil
}

// countDeltas adds what the counters grew by and keeps their new values, in one
// transaction: a crash counts nothing twice. A post that is seen for the first
// time only leaves its counter: when its views came is unknown.
func (h *Handler) countDeltas(ctx context.Context, day string, posts []postCounter) (total int64, err error) {
	err = database.InTx(ctx, h.DB, "counting post views", func(tx *sqlx.Tx) (err error) {
		total, err = h.addDeltas(ctx, tx, day, posts)
		return err
	})
	return total, err
}

func (h *Handler) addDeltas(ctx context.Context, tx *sqlx.Tx, day string, posts []postCounter) (total int64,
	err error) {
	known, err := knownCounters(ctx, tx, posts)
	if err != nil {
		return 0, err
	}
	site := h.ownHost()
	for _, p := range posts {
		before, seen := known["posts:"+p.ID]
		if seen && before == p.Views {
			continue
		}
		if delta := p.Views - before; seen && delta > 0 {
			total += delta
			for _, k := range []key{{site, dimTotal, ""}, {site, dimPage, "post " + p.ID}} {
				if err := addViews(ctx, tx, day, k, delta); err != nil {
					return 0, err
				}
			}
		}
		if err := keepCounter(ctx, tx, "posts:"+p.ID, p.Views); err != nil {
			return 0, err
		}
	}
	return total, nil
}

func knownCounters(ctx context.Context, tx *sqlx.Tx, posts []postCounter) (map[string]int64, error) {
	args := make([]any, len(posts))
	for i, p := range posts {
		args[i] = "posts:" + p.ID
	}
	var rows []struct {
		Entity string `db:"entity"`
		Views  int64  `db:"views"`
	}
	query := "SELECT entity, views FROM cmsjobs_analytics_counters WHERE entity IN (" + database.Marks(len(args)) + ")"
	if err := tx.SelectContext(ctx, &rows, tx.Rebind(query), args...); err != nil {
		return nil, fmt.Errorf("reading the counters of the last run: %w", err)
	}
	known := make(map[string]int64, len(rows))
	for _, r := range rows {
		known[r.Entity] = r.Views
	}
	return known, nil
}

func addViews(ctx context.Context, tx *sqlx.Tx, day string, k key, n int64) error {
	d := database.Of(tx)
	query := "INSERT INTO cmsjobs_analytics_daily (site, day, dimension, name, views, visitors, visits) VALUES " +
		"(?,?,?,?,?,0,0)" +
		d.OnConflict("day, site, dimension, name", "views = cmsjobs_analytics_daily.views + "+d.Inserted("views"))
	if _, err := tx.ExecContext(ctx, tx.Rebind(query), k.site, day, k.dimension, k.name, n); err != nil {
		return fmt.Errorf("adding views of %s: %w", k.name, err)
	}
	return nil
}

func keepCounter(ctx context.Context, tx *sqlx.Tx, entity string, views int64) error {
	query := database.Of(tx).Upsert("cmsjobs_analytics_counters", "entity, views", "(?,?)", "entity", "views")
	if _, err := tx.ExecContext(ctx, tx.Rebind(query), entity, views); err != nil {
		return fmt.Errorf("keeping the counter of %s: %w", entity, err)
	}
	return nil
}
