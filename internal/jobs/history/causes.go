package history

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/jobs"
)

// Groups are the failed jobs by cause, most first.
func (s *Store) Groups(ctx context.Context, f jobs.Filter) ([]jobs.FailureGroup, error) {
	if err := s.indexFailures(ctx); err != nil {
		return nil, err
	}
	if len(f.Queues) > 0 || f.Text != "" || len(f.UUIDs)+len(f.Workers)+len(f.Tags) > 0 {
		return s.groupsByRows(ctx, f)
	}
	var c conditions
	c.in("type", s.spellings(f.Types))
	if f.Cause != "" {
		c.add("cause = ?", f.Cause)
	}
	if !f.Since.IsZero() {
		c.add(fmt.Sprintf("failed_at >= %d", f.Since.Unix()))
	}
	if !f.Until.IsZero() {
		c.add(fmt.Sprintf("failed_at < %d", f.Until.Unix()))
	}
	newest := map[int64]int{}
	var groups []jobs.FailureGroup
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var g jobs.FailureGroup
		var first, last, id int64
		err := r.Scan(&g.Cause, &g.Count, &first, &last, &id)
		g.FirstSeen, g.LastSeen = unix(first), unix(last)
		newest[id] = len(groups)
		groups = append(groups, g)
		return err
	}, "SELECT cause, COUNT(*), MIN(failed_at), MAX(failed_at), MAX(failed_id) FROM cmsjobs_failures WHERE "+
		c.String()+" GROUP BY cause ORDER BY COUNT(*) DESC, cause LIMIT 1000", c.args...)
	if err != nil {
		return nil, fmt.Errorf("grouping failures: %w", err)
	}
	return groups, s.nameGroups(ctx, groups, newest)
}

// nameGroups adds type and message of each group's newest row.
func (s *Store) nameGroups(ctx context.Context, groups []jobs.FailureGroup, newest map[int64]int) error {
	if len(groups) == 0 {
		return nil
	}
	ids := make([]int64, 0, len(newest))
	for id := range newest {
		ids = append(ids, id)
	}
	in, args := s.tables.Dialect.In("failed_id", ids)
	err := s.tables.Query(ctx, s.tables.OwnDB, func(r *sql.Rows) error {
		var id int64
		var kind, message string
		if err := r.Scan(&id, &kind, &message); err != nil {
			return err
		}
		groups[newest[id]].Type, groups[newest[id]].Message = kind, message
		return nil
	}, "SELECT failed_id, type, message FROM cmsjobs_failures WHERE "+in, args...)
	if err != nil {
		return fmt.Errorf("naming groups of failures: %w", err)
	}
	return nil
}

// groupsByRows groups by reading the rows, for filters that the index does not
// know.
func (s *Store) groupsByRows(ctx context.Context, f jobs.Filter) ([]jobs.FailureGroup, error) {
	byCause := map[string]*jobs.FailureGroup{}
	for from := (keysetCursor{}); ; {
		p, err := s.readFailedRows(ctx, f, from, maxLimit)
		if err != nil {
			return nil, err
		}
		for _, r := range p.items { // newest first
			cause := Fingerprint(r.Type, r.Error)
			g, there := byCause[cause]
			if !there {
				g = &jobs.FailureGroup{Cause: cause, Type: r.Type, Message: messageOf(r.Error), LastSeen: r.EndedAt}
				byCause[cause] = g
			}
			g.Count, g.FirstSeen = g.Count+1, r.EndedAt
		}
		if p.end {
			break
		}
		from = p.last
	}
	groups := make([]jobs.FailureGroup, 0, len(byCause))
	for _, g := range byCause {
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b jobs.FailureGroup) int {
		if a.Count != b.Count {
			return int(b.Count - a.Count)
		}
		return strings.Compare(a.Cause, b.Cause)
	})
	return groups, nil
}
