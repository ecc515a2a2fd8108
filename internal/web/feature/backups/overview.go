package backups

import (
	"github.com/cmsjobs/cmsjobs/internal/web"
	"github.com/cmsjobs/cmsjobs/internal/web/format"
)

// overview shows the newest backup that a restore would take, and warns where
// there is none.
func (h handlers) overview(r *web.Request) (web.Summary, error) {
	tile := &web.Tile{Key: "backups.last", Path: "/admin/backups", Note: r.Text("absent.short")}
	summary := web.Summary{Tile: tile}
	if h.port == nil {
		return summary, nil
	}
	list, ready, err := web.Cached(r, "backups", h.knownBackups)
	if err != nil { // a bucket that is unavailable, say
		r.Log().Error("backups not listed", "event", "backup.list_failed", "error", err)
	}
	if err != nil || list.Unavailable != "" {
		summary.Warnings = append(summary.Warnings, web.Warning{Key: "backups.unavailable.short",
			Path: "/admin/backups"})
	}
	summary.Pending = !ready && err == nil
	last := lastGood(list.Items)
	if last == nil {
		tile.Note = r.Text("backups.nothing")
		if ready && err == nil {
			summary.Warnings = append(summary.Warnings,
				web.Warning{Key: "backups.missing", Path: "/admin/backups", Condition: "no_backup"})
		}
		return summary, nil
	}
	tile.At, tile.Note = last.CreatedAt, format.Bytes(last.Size)
	if last.VerifiedAt != nil {
		tile.Note += " · " + r.Text("backups.verified")
	}
	return summary, nil
}

// lastGood is the newest backup of the database that a restore would take.
func lastGood(list []Backup) *Backup {
	var newest *Backup
	for i, b := range list {
		if b.Usable && b.Database && (newest == nil || b.CreatedAt.After(newest.CreatedAt)) {
			newest = &list[i]
		}
	}
	return newest
}
