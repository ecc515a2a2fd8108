package cms

import (
	"context"
	"fmt"
	"time"
)

// EmailLog is a mail as the CMS's mail log plugin keeps it (fob-email-log,
// table email_logs). Addresses are written "Name" <a@b>, joined by ", ".
type EmailLog struct {
	From, To, CC, BCC, Subject string
	HTML, Text, Raw, Debug     string
	At                         time.Time
}

// LogEmail adds a row to email_logs. A CMS without the plugin has no such
// table, which is no error.
func (s *Site) LogEmail(ctx context.Context, e EmailLog) error {
	there, err := s.HasTable(ctx, "email_logs")
	if err != nil || !there {
		return err
	}
	zone, err := s.Zone(ctx)
	if err != nil {
		return err
	}
	at := WallClock(e.At, zone)
	query := fmt.Sprintf(`INSERT INTO %s (%s, %s, cc, bcc, subject, html_body, text_body, raw_body, debug_info,
		created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, s.quote(s.Table("email_logs")), s.quote("from"), s.quote("to"))
	if _, err := s.DB.ExecContext(ctx, s.DB.Rebind(query), e.From, e.To, e.CC, e.BCC, e.Subject, e.HTML, e.Text, e.Raw,
		e.Debug, at, at); err != nil {
		return fmt.Errorf("writing the CMS's mail log: %w", err)
	}
	return nil
}
