package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/web"
)

// webBackups shows backups on pages: the name of one is ID@DESTINATION.
type webBackups struct{ h *backup.Handler }

func (b webBackups) Backups(ctx context.Context) ([]web.Backup, error) {
	list, err := b.h.List(ctx, "")
	if err != nil && len(list) == 0 {
		return nil, err
	}
	proofs, err := b.h.Proofs(ctx, "", 500)
	if err != nil {
		return nil, err
	}
	out := make([]web.Backup, 0, len(list))
	for _, s := range list {
		out = append(out, backupView(s, proofs))
	}
	return out, nil
}

func backupView(s backup.Stored, proofs []backup.Proof) web.Backup {
	v := web.Backup{ID: s.ID + "@" + s.Destination, Size: s.Size, CreatedAt: s.Started, Complete: s.Status == backup.Good, Encrypted: s.Encrypted,
		Destination: s.Destination, Tables: len(s.Tables), Files: int(s.FileCount)}
	for _, p := range proofs { // newest first
		if p.Backup == s.ID && p.Destination == s.Destination {
			v.VerifiedAt, v.Verdict = &p.Finished, proofText(p)
			break
		}
	}
	return v
}

func proofText(p backup.Proof) string {
	if !p.OK {
		return "bad: " + strings.Join(p.Problems, "; ")
	}
	return strings.TrimSuffix(string(p.Level)+", "+p.Note, ", ")
}

func (b webBackups) find(ctx context.Context, name string) (backup.Stored, error) {
	id, destination, _ := strings.Cut(name, "@")
	s, err := b.h.Show(ctx, id, destination)
	if errors.Is(err, backup.ErrNoBackup) {
		err = errors.Join(jobs.ErrNotFound, err)
	}
	return s, err
}

func (b webBackups) OpenBackup(ctx context.Context, name string) (io.ReadCloser, web.Backup, error) {
	s, err := b.find(ctx, name)
	if err != nil {
		return nil, web.Backup{}, err
	}
	content, info, err := b.h.Download(ctx, s)
	view := backupView(s, nil)
	view.ID, view.Size = filepath.Base(s.Archive), info.Size
	return content, view, err
}

func (b webBackups) DeleteBackup(ctx context.Context, name string) error {
	s, err := b.find(ctx, name)
	if err != nil {
		return err
	}
	return b.h.Delete(ctx, s)
}
