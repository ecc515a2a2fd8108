package backup_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cmsjobs/cmsjobs/internal/cms"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/fileset"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
	"github.com/cmsjobs/cmsjobs/internal/storage"
	"github.com/cmsjobs/cmsjobs/migrations"
)

// A backup of database and uploads onto a disk, verified, and what a restore of
// one folder would change.
func Example() {
	if err := example(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// complete, verified by: restored
	// would overwrite [storage/hello.txt]
	// restored 1 files
}

func example(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "backup-example-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	dsn := "file:" + filepath.Join(dir, "cms.sqlite")
	db, err := sqlx.Open("sqlite", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := migrations.Up(ctx, db); err != nil {
		return err
	}
	uploads, err := storage.NewLocal(filepath.Join(dir, "uploads"), storage.LocalOptions{Create: true})
	if err != nil {
		return err
	}
	backups, err := storage.NewLocal(filepath.Join(dir, "backups"), storage.LocalOptions{Create: true})
	if err != nil {
		return err
	}
	hello := filepath.Join(dir, "uploads", "hello.txt")
	if err := os.WriteFile(hello, []byte("hello"), 0o644); err != nil {
		return err
	}
	h, err := backup.New(backup.Config{
		Site: &cms.Site{DB: db}, DB: db, DSN: dsn,
		Destinations: map[string]storage.Store{"disk": backups},
		Files:        []fileset.Set{{Label: "storage", Store: uploads}},
		Now:          time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	report, err := h.Create(ctx, backup.Request{Database: true, Files: true}, nil)
	if err != nil {
		return err
	}
	fmt.Printf("%s, verified by: %s\n", report.Status, report.Verification.Level)

	if err := os.WriteFile(hello, []byte("oops"), 0o644); err != nil {
		return err
	}
	newest, err := h.Show(ctx, "latest", "")
	if err != nil {
		return err
	}
	restore := restore.Request{Backup: newest, Files: true, Paths: []string{"storage/hello.txt"}, SkipSafety: true}
	plan, err := h.Plan(ctx, restore, nil)
	if err != nil {
		return err
	}
	fmt.Println("would overwrite", plan.Examples)
	restore.Confirm = plan.Token // typed by a person
	done, err := h.Restore(ctx, restore, nil)
	fmt.Println("restored", done.Files, "files")
	return err
}
