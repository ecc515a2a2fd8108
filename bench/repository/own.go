package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"filippo.io/age"

	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/repository"
	"github.com/cmsjobs/cmsjobs/internal/storage"
)

// own does one step of ours in this process.
func (b bench) own(ctx context.Context, step string) error {
	name := "own"
	o := repository.Options{Now: time.Now, Logger: slog.Default()}
	if b.identity != "" {
		name = "own-age"
		file, err := os.Open(b.identity)
		if err != nil {
			return err
		}
		defer file.Close()
		if o.Identities, err = age.ParseIdentities(file); err != nil {
			return err
		}
		for _, i := range o.Identities {
			if x, ok := i.(*age.X25519Identity); ok {
				o.Recipients = append(o.Recipients, x.Recipient())
			}
		}
	}
	store, err := storage.NewLocal(filepath.Join(b.dir, name), storage.LocalOptions{Create: true})
	if err != nil {
		return err
	}
	defer store.Close()
	o.Store = store
	r, err := repository.Create(ctx, o)
	if err != nil {
		return err
	}
	switch step {
	case "verify":
		return verify(ctx, r)
	case "restore":
		record, err := r.Find(ctx, "")
		if err != nil {
			return err
		}
		done, err := r.Restore(ctx, repository.RestoreRequest{
			Backup: record, Into: filepath.Join(b.dir, "restored-"+name)})
		if err == nil {
			fmt.Printf("%d files, %d requests", done.Files, r.Operations().Requests())
		}
		return err
	}
	folder, err := repository.NewFolder(b.source())
	if err != nil {
		return err
	}
	defer folder.Close()
	report, err := r.Backup(ctx, repository.Request{Sources: []repository.Labelled{{Label: "media", Source: folder}}})
	if err != nil {
		return err
	}
	fmt.Printf("%d of %d files unchanged, %d bytes of files read, %d objects, %d requests",
		report.Unchanged, report.Record.Files, report.Read, report.Objects, report.Operations.Requests())
	return nil
}

func verify(ctx context.Context, r *repository.Repository) error {
	v, err := r.Verify(ctx, repository.VerifyRequest{Level: repository.Bytes})
	if err != nil {
		return err
	}
	if len(v.Problems) > 0 {
		return fmt.Errorf("%d problems, %s first: %w", len(v.Problems), v.Problems[0].Key, v.Problems[0].Err)
	}
	fmt.Printf("%d objects of %d backups, %d requests", v.Read, v.Backups, r.Operations().Requests())
	return nil
}
