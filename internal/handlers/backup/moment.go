package backup

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/binlog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/retention"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
)

// ErrNoMoment says that a moment cannot be restored.
var ErrNoMoment = errors.New("that moment cannot be restored")

// ParseMoment reads a time of a zone, or one with an offset.
func ParseMoment(text string, zone *time.Location) (time.Time, error) {
	for _, layout := range []string{time.DateTime, "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if at, err := time.ParseInLocation(layout, text, zone); err == nil {
			return at, nil
		}
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 Z07:00"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, phrase.Errorf("%.40q is no time: write it as 2026-11-21 14:03:00 or 2026-11-21T14:03:00+01:00",
		text)
}

// FindMoment chooses the backup and the log that lead to a moment: of a destination, or
// of any. What the server wrote until now is archived first, where it answers.
func (h *Handler) FindMoment(ctx context.Context, at time.Time, destination string) (restore.MomentRequest, error) {
	return h.findMoment(ctx, at, destination, "")
}

// findMoment is FindMoment from the backup of an ID; "" is any.
func (h *Handler) findMoment(ctx context.Context, at time.Time, destination, id string) (restore.MomentRequest,
	error) {
	q := restore.MomentRequest{At: at, Emptied: h.emptied}
	if database.Of(h.c.Site.DB).Name != database.MySQL {
		return q, fmt.Errorf("%w: only MySQL and MariaDB write a log that is archived; restore a backup", ErrNoMoment)
	}
	now := h.c.Now()
	if at.After(now) {
		return q, fmt.Errorf("%w: %s is not yet", ErrNoMoment, at.Format(time.DateTime))
	}
	trouble, err := h.archiveOnce(ctx, h.newArchiver())
	fresh := err == nil && trouble == ""
	all, err := h.List(ctx, destination)
	if err != nil {
		return q, err
	}
	reasons := []string{}
	for _, b := range all { // newest first
		if !h.verifiedBase(b) || b.Log.Snapshot.Unix() > at.Unix() || id != "" && b.ID != id {
			continue
		}
		place := h.logPlaces()[b.Destination]
		chain, err := binlog.ChainOf(ctx, place, binlog.Base{Position: b.Log.LogPosition, Snapshot: b.Log.Snapshot})
		if err != nil {
			return q, err
		}
		if reason := short(chain, at, fresh); reason != "" {
			reasons = append(reasons, fmt.Sprintf("from %s at %s: %s", b.ID, b.Destination, reason))
			continue
		}
		signer, err := h.Signer(ctx)
		if err != nil {
			return q, err
		}
		q.Chain, q.Log = chain, &binlog.Reader{Store: place, Identities: h.c.Options.Identities, Signer: signer,
			Dir: h.c.StageDir}
		q.Backup, err = h.Full(ctx, b)
		return q, err
	}
	if len(reasons) == 0 {
		reasons = append(reasons, "no verified backup of the database from before it knows its position in the log")
	}
	return q, fmt.Errorf("%w: %s", ErrNoMoment, strings.Join(reasons[:min(len(reasons), 3)], "; "))
}

// verifiedBase says whether a replay may begin with a backup that was read back and found
// good, or none ever is.
func (h *Handler) verifiedBase(b catalog.Stored) bool {
	if !startsLog(b) || b.Safety {
		return false
	}
	state := h.State(b)
	return b.Status == manifest.Complete && (state == retention.Verified || state == retention.Pending)
}

// RightToReplay says why a moment cannot be restored on the site's server: a
// *binlog.MissingError where the account lacks the right.
func (h *Handler) RightToReplay(ctx context.Context) error { return binlog.RightToReplay(ctx, h.c.DSN) }

// short says why a chain does not reach a moment. Behind its end nothing was written, if
// the log was archived to now and nothing is missing.
func short(c binlog.Chain, at time.Time, fresh bool) string {
	switch {
	case c.Until.Unix() > at.Unix():
		return ""
	case c.Missing != "":
		return c.Missing
	case !fresh:
		return fmt.Sprintf("the archive ends at %s UTC, and the server's log cannot be read now",
			c.Until.UTC().Format(time.DateTime))
	}
	return ""
}

// newName are names that a new database may have.
var newName = regexp.MustCompile(`^[A-Za-z0-9_]{1,60}$`)

// IsDatabaseName says whether a text is a name that [Handler.IntoNamed] takes.
func IsDatabaseName(text string) bool { return newName.MatchString(text) }

// IntoNamed is the DSN of a database of a name on the site's server.
func (h *Handler) IntoNamed(name string) (string, error) {
	if !IsDatabaseName(name) {
		return "", phrase.Errorf("the name of a new database has 1 to 60 letters, digits and _")
	}
	c, err := mysql.ParseDSN(h.c.DSN)
	if err != nil {
		return "", errors.New("the DSN of the site's database cannot be read")
	}
	if strings.EqualFold(c.DBName, name) {
		return "", phrase.Errorf("%s is the site's own database: name none to restore the site", name)
	}
	c.DBName = name
	return c.FormatDSN(), nil
}
