package cms

import (
	"context"
	"fmt"
	"time"
)

// Notify puts a message to the administrators into the CMS's own list
// (admin_notifications, the bell in its header). A CMS without that table is
// told nothing, which is no error: told says which it was.
func (s *Site) Notify(ctx context.Context, now time.Time, n Notification) (told bool, err error) {
	there, err := s.HasTable(ctx, "admin_notifications")
	if err != nil || !there {
		return false, err
	}
	zone, err := s.Zone(ctx)
	if err != nil {
		return false, err
	}
	at := WallClock(now, zone)
	query := fmt.Sprintf("INSERT INTO %s (title, description, action_label, action_url, created_at, updated_at) "+
		"VALUES (?, ?, ?, ?, ?, ?)",
		s.quote(s.Table("admin_notifications")))
	_, err = s.DB.ExecContext(ctx, s.DB.Rebind(query), cut(n.Title, 191), cut(n.Description, 400),
		cut(n.ActionLabel, 191), cut(n.ActionURL, 191), at, at)
	if err != nil {
		return false, fmt.Errorf("telling the CMS's administrators: %w", err)
	}
	return true, nil
}

// Notification is one message to the administrators. What is longer than the
// CMS's columns (title and address 191, description 400 characters) is cut.
type Notification struct {
	Title, Description     string
	ActionLabel, ActionURL string
}

func cut(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}
