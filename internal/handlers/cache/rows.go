package cache

import (
	"context"
	"strconv"
	"time"

	"github.com/cmsjobs/cmsjobs/internal/cms"
)

// wallClock is how the CMS writes times: in its own zone.
const wallClock = "2006-01-02 15:04:05"

// retention is how long rows of a table are kept.
type retention struct {
	table string
	// days 0 keeps them for ever.
	days int
	// offered is what a dry-run counts where days is 0: what pruning would
	// gain.
	offered int
}

// cleanRows removes old rows: the audit and request log by the CMS's own
// settings, the others where the owner switched it on.
func (h *Handler) cleanRows(ctx context.Context, r *Report) error {
	settings, err := h.site.Settings(ctx)
	if err != nil {
		return err
	}
	zone, err := h.site.Zone(ctx)
	if err != nil {
		return err
	}
	now := h.now().In(zone)
	for _, t := range h.retentions(settings) {
		days := t.days
		if days <= 0 && r.DryRun && t.offered > 0 {
			days = t.offered
			r.note("%s is not pruned: rows older than %d days are counted only", t.table, days)
		}
		if days <= 0 {
			continue
		}
		cutoff := now.Add(-time.Duration(days) * 24 * time.Hour).Format(wallClock)
		if err := h.prune(ctx, pruning{table: t.table, key: "id", where: "created_at < ?", args: []any{cutoff}},
			r); err != nil {
			return err
		}
	}
	return h.cleanSessions(ctx, r)
}

// The CMS's settings for its own logs are days, 30 where there is no row, and
// 0 for never (DataRetentionPeriod).
func (h *Handler) retentions(settings cms.Settings) []retention {
	o := h.options
	return []retention{
		{table: "audit_histories", days: settings.Int("audit_log_data_retention_period", 30)},
		{table: "request_logs", days: settings.Int("request_log_data_retention_period", 30)},
		{table: "email_logs", days: o.EmailLogDays, offered: settings.Int("keep_email_log_for_days", 30)},
		{table: "revisions", days: o.RevisionDays, offered: 365},
		{table: "member_activity_logs", days: o.MemberActivityDays, offered: 365},
	}
}

// cleanSessions removes what Laravel's lottery may leave for ever: sessions
// whose last activity is SESSION_LIFETIME minutes ago.
func (h *Handler) cleanSessions(ctx context.Context, r *Report) error {
	if !h.options.Sessions && !r.DryRun {
		return nil
	}
	if !h.options.Sessions {
		r.note("sessions is not pruned: expired rows are counted only")
	}
	minutes, err := strconv.Atoi(h.site.Env.String("SESSION_LIFETIME", "120"))
	if err != nil || minutes <= 0 {
		minutes = 120
	}
	last := h.now().Add(-time.Duration(minutes) * time.Minute).Unix()
	return h.prune(ctx, pruning{table: "sessions", key: "id", where: "last_activity < ?", args: []any{last}}, r)
}
