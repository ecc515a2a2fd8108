package doctor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/binlog"
)

// checkLog says which moments between backups can be restored, and what is missing for
// more.
func checkLog(ctx context.Context, r *app.Services) ([]Finding, error) {
	h := r.Handlers.Backup
	if h == nil || !h.HasLog() {
		return nil, nil
	}
	server, err := h.LookAtLog(ctx)
	var missing *binlog.MissingError
	switch {
	case errors.As(err, &missing) && r.Config.Backup.Log == string(backup.LogOn):
		return []Finding{warn(missing.Fix, "backup.log is on, but %s", missing.What)}, nil
	case errors.As(err, &missing):
		f := ok("only the moments of backups can be restored: %s", missing.What)
		f.Fix = missing.Fix
		return []Finding{f}, nil
	case err != nil:
		return nil, err
	}
	found := judgeLog(server, r.Config.Backup)
	switch err := h.RightToReplay(ctx); {
	case errors.As(err, &missing):
		found = append(found, warn(missing.Fix, "the log is archived, but moments cannot be restored with "+
			"database.dsn: %s", missing.What))
	case err != nil:
		return found, err
	}
	if text, err := h.LogTrouble(ctx); err != nil {
		return found, err
	} else if text != "" {
		found = append(found, warn("after a gap: cmsjobs backup create --only-database", "the binary log is not all "+
			"archived: %s", text))
	}
	reach, err := h.LogReach(ctx)
	for _, name := range slices.Sorted(maps.Keys(reach)) {
		found = append(found, reaches(name, reach[name]))
	}
	return found, err
}

// leastKept is how long a server should keep its log: the service may be away for a day,
// and a look at it may fail a few times.
func leastKept(every time.Duration) time.Duration { return max(24*time.Hour, 10*every) }

// judgeLog says what of the server's settings could keep a moment from being restored.
func judgeLog(s binlog.Server, c config.Backup) (found []Finding) {
	if s.Format == "STATEMENT" {
		found = append(found, warn("set binlog_format=ROW in the server's configuration", "the binary log holds "+
			"statements (binlog_format is STATEMENT): what depends on the session or on chance may be restored "+
			"otherwise than it was"))
	}
	if s.RowImage != "FULL" {
		found = append(found, warn("set binlog_row_image=FULL in the server's configuration", "the binary log has not "+
			"all columns of each row (binlog_row_image is %s): tables without a primary key cannot be restored by it",
			s.RowImage))
	}
	if least := leastKept(c.LogEvery); s.Keeps > 0 && s.Keeps < least {
		found = append(found, warn("", "the server removes its binary log after %s, and it is archived every %s "+
			"(backup.log_every): a service that is away for longer leaves a gap, and nothing later can be restored "+
			"before the next backup of the database", display.Span(s.Keeps), display.Span(c.LogEvery)).by(
			"raise binlog_expire_logs_seconds (or expire_logs_days) in the server's configuration to %d seconds at "+
				"least", int64(least/time.Second)))
	}
	if c.Tool != "own" {
		found = append(found, warn("set backup.tool to own", "backups by mysqldump do not know their position in the "+
			"binary log: no moment can be restored from them"))
	}
	return found
}

// reaches says how far one can go at a destination.
func reaches(name string, r binlog.Reach) Finding {
	if len(r.Windows) == 0 {
		return ok("the binary log is archived at %s from the next backup of the database on", name)
	}
	last := r.Windows[len(r.Windows)-1]
	return ok("any second from %s to %s UTC can be restored from %s, where the archived log takes %s (cmsjobs backup "+
		"moments)", last.From.UTC().Format(time.DateTime), last.Until.UTC().Format(time.DateTime), name,
		humanize.IBytes(uint64(r.Bytes)))
}
