package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/manifest"
)

func (a *commandLine) backupCommand() *cobra.Command {
	c := &cobra.Command{Use: "backup", Short: "Create, verify, list and restore backups",
		Long: "Backups are named by their id; \"latest\" is the newest one that is complete, verified or not yet " +
			"due for a verification, and made by this installation or one that it trusts. Where several destinations " +
			"have it, --from chooses one.",
		Example: "  cmsjobs --cms /var/www/site backup create\n  cmsjobs backup list\n  cmsjobs backup restore " +
			"latest --database --dry-run"}
	c.AddCommand(a.backupCreateCommand(), a.backupListCommand(), a.backupShowCommand(), a.backupVerifyCommand(),
		a.backupDownloadCommand(), a.backupPruneCommand(), a.backupSweepCommand(), a.backupKeyCommand(),
		a.backupRestoreCommand(), a.backupContentsCommand(), a.backupExtractCommand(), a.backupCompareCommand(),
		a.backupMomentsCommand())
	return c
}

// withBackups opens the services and refuses where no backups are possible.
func (a *commandLine) withBackups(c *cobra.Command, do func(context.Context, *backup.Handler) error) error {
	return a.withServices(c, func(ctx context.Context, r *app.Services) error {
		if r.Handlers.Backup == nil {
			return app.Usagef("where backups go is not known: name the CMS's folder (--cms DIR), or set backup.dir")
		}
		return do(ctx, r.Handlers.Backup)
	})
}

// backupProgress shows bytes on a terminal.
func (a *commandLine) backupProgress() (func(catalog.Step), func()) {
	var set func(int64, string)
	end := func() {}
	return func(s catalog.Step) {
		note := s.Note
		if set == nil {
			total := s.Total
			if total <= 0 {
				total = -1
			}
			if s.Done == 0 && s.Note != "" && !a.global.json {
				fmt.Fprintln(a.Err, display.Printable(s.Note)) // the estimate
			}
			set, end = a.byteProgress(total, "backup")
			note = ""
		}
		set(s.Done, note)
	}, func() { end() }
}

func (a *commandLine) backupCreateCommand() *cobra.Command {
	var request backup.Request
	var onlyDatabase, onlyFiles, dry bool
	c := &cobra.Command{Use: "create", Short: "Create a backup now, without the queue, and verify it",
		Args: cobra.NoArgs,
		Long: `Says what will be read, makes a backup of the database and the uploads, verifies it as
backup.verify says, and removes older ones that retention does not keep.

Exit codes: 0 it is complete · 1 it is not`,
		Example: "  cmsjobs backup create --name before-the-update\n  cmsjobs backup create --only-database --to " +
			"local\n  cmsjobs backup create --dry-run",
		RunE: func(c *cobra.Command, _ []string) error {
			request.Database, request.Files, request.By = !onlyFiles, !onlyDatabase, "command line"
			request.Source = backup.SourceCommand
			return a.withBackups(c, func(ctx context.Context, h *backup.Handler) error {
				if dry {
					return a.printEstimate(ctx, h, request)
				}
				return a.createBackup(ctx, h, request)
			})
		}}
	f := c.Flags()
	f.StringVar(&request.Name, "name", "", "a note for people")
	f.StringSliceVar(&request.Destinations, "to", nil, "destinations, for example local,s3 (default: all that are "+
		"configured)")
	f.StringSliceVar(&request.Tables, "tables", nil, "only these tables; such a backup never counts as a backup of "+
		"the site")
	f.BoolVar(&request.Full, "full", false, "the files in the archive, though backup.form is repository")
	f.BoolVar(&onlyDatabase, "only-database", false, "without files")
	f.BoolVar(&onlyFiles, "only-files", false, "without the database")
	f.StringVar(&request.Tool, "tool", "", "own, or mysqldump: the installed client (default: backup.tool)")
	f.BoolVar(&dry, "dry-run", false, "only show what would be read, the expected size and the free space")
	c.MarkFlagsMutuallyExclusive("only-database", "only-files")
	return c
}

func (a *commandLine) createBackup(ctx context.Context, h *backup.Handler, request backup.Request) error {
	progress, end := a.backupProgress()
	report, err := h.Create(ctx, request, progress)
	end()
	for _, w := range report.Warnings {
		fmt.Fprintf(a.Err, "warning: %s\n", display.Printable(w))
	}
	if err != nil {
		return err
	}
	verification := "not verified"
	if report.Verification != nil {
		verification = app.VerificationText(*report.Verification)
	}
	return a.list(report, []string{"ID", "STATUS", "SIZE", "TABLES", "ROWS", "FILES", "VERIFIED"},
		[][]string{{report.ID, string(report.Status),
			humanize.IBytes(uint64(report.Size + report.Stored)), strconv.Itoa(report.Tables),
			strconv.FormatInt(report.Rows, 10),
			strconv.FormatInt(report.Files, 10), verification}}, "")
}

func (a *commandLine) printEstimate(ctx context.Context, h *backup.Handler, request backup.Request) error {
	e, err := h.Estimate(ctx, request)
	if err != nil {
		return err
	}
	if a.global.json {
		return a.printJSON(e)
	}
	fmt.Fprintf(a.out, "To read: %s.\n", e)
	for _, name := range slices.Sorted(maps.Keys(e.Free)) {
		fmt.Fprintf(a.out, "Free at %s: %s.\n", name, humanize.IBytes(uint64(e.Free[name])))
	}
	for _, w := range e.Warnings {
		fmt.Fprintf(a.out, "Warning: %s.\n", display.Printable(w))
	}
	return nil
}

func (a *commandLine) backupListCommand() *cobra.Command {
	var from string
	c := &cobra.Command{Use: "list", Short: "List the backups at all destinations, newest first",
		Example: "  cmsjobs backup list --json", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withBackups(c, func(ctx context.Context, h *backup.Handler) error {
				list, err := h.List(ctx, from)
				if err = errors.Join(a.printBackups(list, "No backups."), err); err != nil {
					return err
				}
				return a.printLogSizes(ctx, h, from)
			})
		}}
	c.Flags().StringVar(&from, "from", "", "only this destination")
	return c
}

// printLogSizes says what the archived log takes beside the backups.
func (a *commandLine) printLogSizes(ctx context.Context, h *backup.Handler, from string) error {
	sizes, err := h.LogBytes(ctx)
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		if from == "" || from == name {
			fmt.Fprintf(a.Err, "archived log at %s: %s, which max_total counts too\n", name,
				humanize.IBytes(uint64(sizes[name])))
		}
	}
	return err
}

func (a *commandLine) printBackups(list []catalog.Stored, nothing string) error {
	cells := make([][]string, len(list))
	for i, b := range list {
		cells[i] = []string{b.ID, b.Destination, string(b.Status), newestVerification(b), string(b.Origin),
			display.Ago(b.Started, a.Now()), humanize.IBytes(uint64(b.Space())), strconv.Itoa(b.TableCount),
			strconv.FormatInt(b.FileCount, 10), b.Name}
	}
	if list == nil {
		list = []catalog.Stored{}
	}
	return a.list(list, []string{"ID", "DESTINATION", "STATUS", "VERIFIED", "ORIGIN", "MADE", "SIZE", "TABLES",
		"FILES", "NAME"}, cells, nothing)
}

// newestVerification is a copy's newest verification in a word.
func newestVerification(b catalog.Stored) string {
	switch {
	case b.Verification == nil:
		return "none"
	case !b.Verification.OK:
		return "failed"
	}
	return string(b.Verification.Level)
}

// findBackup finds a backup; of the latest one it says which that is, how far
// it may be relied on, and what was passed over.
func (a *commandLine) findBackup(ctx context.Context, h *backup.Handler, w catalog.Wanted) (catalog.Stored, error) {
	b, passed, err := h.Find(ctx, w)
	if err != nil || w.ID != "latest" {
		return b, err
	}
	fmt.Fprintf(a.Err, "latest is %s at %s, made %s: %s\n", b.ID, b.Destination, display.Ago(b.Started, a.Now()),
		display.Printable(h.Standing(b)))
	for i, p := range passed {
		if i == 3 {
			fmt.Fprintf(a.Err, "passed over: %d more\n", len(passed)-i)
			break
		}
		fmt.Fprintf(a.Err, "passed over: %s at %s is %s, origin %s: %s\n", p.ID, p.Destination, p.Status, p.Origin,
			display.Printable(h.Standing(p)))
	}
	return b, nil
}

func (a *commandLine) backupShowCommand() *cobra.Command {
	var from string
	c := &cobra.Command{Use: "show ID", Short: "Show what a backup holds and how it was verified",
		Example: "  cmsjobs backup show latest", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withBackups(c, func(ctx context.Context, h *backup.Handler) error {
				b, err := a.findBackup(ctx, h, catalog.Wanted{ID: args[0], Destination: from})
				if err != nil {
					return err
				}
				verifications, err := h.Verifications(ctx, b.ID, 20)
				if err != nil {
					return err
				}
				return a.printJSON(map[string]any{"backup": b, "verifications": verifications})
			})
		}}
	c.Flags().StringVar(&from, "from", "", "the destination to read")
	return c
}

func (a *commandLine) backupVerifyCommand() *cobra.Command {
	var from, level string
	c := &cobra.Command{Use: "verify [ID]", Short: "Verify a backup by reading it back or restoring it",
		Args: cobra.MaximumNArgs(1),
		Long: `Reads a backup back from its destination. Levels: bytes (size and hash), parsed (every entry and
row count), restored (into a temporary database that is then compared and dropped).

A backup whose newest verification failed has the status failed: it is not restored, and takes
no other's place.

Exit codes: 0 it is what it should be · 1 it is not, or could not be read`,
		Example: "  cmsjobs backup verify\n  cmsjobs backup verify latest --level parsed",
		RunE: func(c *cobra.Command, args []string) error {
			id := "latest"
			if len(args) > 0 {
				id = args[0]
			}
			return a.withBackups(c, func(ctx context.Context, h *backup.Handler) error {
				b, err := a.findBackup(ctx, h, catalog.Wanted{ID: id, Destination: from})
				if err != nil {
					return err
				}
				progress, end := a.backupProgress()
				verification, err := h.Verify(ctx, b, manifest.Level(level), progress)
				end()
				return errors.Join(a.list(verification, []string{"BACKUP", "DESTINATION", "TABLES", "ROWS", "FILES",
					"RESULT"}, [][]string{{verification.Backup, verification.Destination,
					strconv.Itoa(verification.Tables), strconv.FormatInt(verification.Rows, 10),
					strconv.FormatInt(verification.Files, 10), app.VerificationText(verification)}}, ""), err)
			})
		}}
	c.Flags().StringVar(&from, "from", "", "the destination whose copy is verified")
	c.Flags().StringVar(&level, "level", "", "bytes, parsed or restored (default: backup.verify's)")
	return c
}

func (a *commandLine) backupDownloadCommand() *cobra.Command {
	var from, out string
	c := &cobra.Command{Use: "download ID", Short: "Write a backup's archive to a file",
		Example: "  cmsjobs backup download latest -o /tmp/", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withBackups(c, func(ctx context.Context, h *backup.Handler) error {
				b, err := a.findBackup(ctx, h, catalog.Wanted{ID: args[0], Destination: from})
				if err != nil {
					return err
				}
				path := out
				if info, err := os.Stat(path); err == nil && info.IsDir() {
					path = filepath.Join(path, filepath.Base(b.Archive))
				}
				n, sum, err := download(ctx, h, b, path)
				if err != nil {
					return err
				}
				return a.list(map[string]any{"file": path, "bytes": n, "sha256": sum}, []string{"FILE", "SIZE"},
					[][]string{{path, humanize.IBytes(uint64(n))}}, "")
			})
		}}
	c.Flags().StringVar(&from, "from", "", "the destination to read from")
	c.Flags().StringVarP(&out, "output", "o", ".", "a new file, or a folder")
	return c
}

// download writes a file that only its owner may read: it holds everything.
func download(ctx context.Context, h *backup.Handler, b catalog.Stored, path string) (n int64, sum string, err error) {
	content, _, err := h.Whole(ctx, b)
	if err != nil {
		return 0, "", err
	}
	defer content.Close()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, "", err
	}
	hash := sha256.New()
	n, err = io.Copy(f, io.TeeReader(content, hash))
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, os.Remove(path))
	}
	return n, hex.EncodeToString(hash.Sum(nil)), err
}
