package backups

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"path/filepath"
	"strconv"

	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

func (h handlers) listBackups(r *web.Request) error {
	list, err := h.knownBackups(r.Ctx())
	if err != nil {
		return fmt.Errorf("listing backups: %w", err)
	}
	return r.JSON(http.StatusOK, shownList(r.View(), list))
}

// BackupList is what is known of the backups.
type BackupList struct {
	Items []Backup `json:"items"`
	// Unavailable says which destinations could not be asked and why; their
	// backups are not among the items.
	Unavailable string `json:"unavailable,omitempty"`
}

// knownBackups lists what the places that answer hold; that none does is an error.
func (h handlers) knownBackups(ctx context.Context) (BackupList, error) {
	list, err := h.port.Backups(ctx)
	if errors.Is(err, web.ErrUnavailable) && len(list) > 0 {
		return BackupList{list, err.Error()}, nil
	}
	return BackupList{Items: list}, err
}

func (h handlers) downloadBackup(r *web.Request) error {
	id, err := r.NameParam("id")
	if err != nil {
		return err
	}
	archive, backup, err := h.port.OpenBackup(r.Ctx(), id)
	if err != nil {
		return fmt.Errorf("opening the backup %s: %w", id, err)
	}
	defer archive.Close()
	r.AuditNow("backups.download", id) // a copy of everything leaves the server
	header := r.Response().Header()
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{
		"filename": filepath.Base(backup.ID)}))
	if backup.Size > 0 {
		header.Set("Content-Length", strconv.FormatInt(backup.Size, 10))
	}
	return r.Stream(http.StatusOK, "application/octet-stream", archive)
}

func (h handlers) deleteBackup(r *web.Request) error {
	id, err := r.NameParam("id")
	if err != nil {
		return err
	}
	if err := h.port.DeleteBackup(r.Ctx(), id); err != nil {
		return fmt.Errorf("deleting the backup %s: %w", id, err)
	}
	return r.NoContent(http.StatusNoContent)
}

func shownList(v ops.Viewer, list BackupList) BackupList {
	list.Items = ops.Each(list.Items, func(b Backup) Backup {
		b.Verification = v.Text(b.Verification)
		return b
	})
	list.Unavailable = v.Text(list.Unavailable)
	return list
}
