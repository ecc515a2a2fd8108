package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/browse"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/catalog"
)

func (a *commandLine) backupContentsCommand() *cobra.Command {
	var from string
	var patterns []string
	c := &cobra.Command{Use: "contents ID", Short: "List the tables, folders and files of a backup",
		Args: cobra.ExactArgs(1),
		Long: `Reads the whole archive and lists its tables with their rows, and its folders. With --files it
lists the files that fit instead.`,
		Example: "  cmsjobs backup contents latest\n  cmsjobs backup contents latest --files 'uploads/news/**'",
		RunE: func(c *cobra.Command, args []string) error {
			return a.withBackups(c, func(ctx context.Context, h *backup.Handler) error {
				b, err := a.findBackup(ctx, h, catalog.Wanted{ID: args[0], Destination: from})
				if err != nil {
					return err
				}
				progress, end := a.backupProgress()
				contents, err := h.Contents(ctx, b, patterns, progress)
				end()
				if err != nil {
					return err
				}
				return a.printContents(contents, len(patterns) > 0)
			})
		}}
	c.Flags().StringSliceVar(&patterns, "files", nil, "list the files that fit, for example 'uploads/news/**'")
	c.Flags().StringVar(&from, "from", "", "the destination to read")
	return c
}

func (a *commandLine) printContents(c browse.Contents, files bool) error {
	if files {
		cells := make([][]string, len(c.Files))
		for i, f := range c.Files {
			cells[i] = []string{f.Name, humanize.IBytes(uint64(f.Size)), f.Modified.UTC().Format("2006-01-02 15:04")}
		}
		if err := a.list(c, []string{"FILE", "SIZE", "CHANGED (UTC)"}, cells, "No file fits."); err != nil ||
			c.More == 0 ||
			a.global.json {
			return err
		}
		_, err := fmt.Fprintf(a.out, "and %d more\n", c.More)
		return err
	}
	if a.global.json {
		return a.printJSON(c)
	}
	cells := make([][]string, len(c.Tables))
	for i, t := range c.Tables {
		rows := strconv.FormatInt(t.Rows, 10)
		if t.Empty {
			rows = "left out"
		}
		cells[i] = []string{t.Name, rows, humanize.IBytes(uint64(t.Bytes))}
	}
	if err := a.table([]string{"TABLE", "ROWS", "SQL"}, cells); err != nil {
		return err
	}
	cells = make([][]string, len(c.Folders))
	for i, f := range c.Folders {
		cells[i] = []string{f.Name + "/", strconv.FormatInt(f.Files, 10), humanize.IBytes(uint64(f.Bytes))}
	}
	fmt.Fprintln(a.out)
	return a.table([]string{"FOLDER", "FILES", "SIZE"}, cells)
}

func (a *commandLine) backupExtractCommand() *cobra.Command {
	var from, out string
	c := &cobra.Command{Use: "extract ID PATH", Short: "Write one file of a backup to a file",
		Args: cobra.ExactArgs(2),
		Long: `PATH is a file as "backup contents ID --files PATTERN" names it. The file is kept only if the
whole archive is as it was made.`,
		Example: "  cmsjobs backup extract latest uploads/news/a.jpg -o /tmp/",
		RunE: func(c *cobra.Command, args []string) error {
			return a.withBackups(c, func(ctx context.Context, h *backup.Handler) error {
				b, err := a.findBackup(ctx, h, catalog.Wanted{ID: args[0], Destination: from, Files: true})
				if err != nil {
					return err
				}
				name := out
				if info, err := os.Stat(name); err == nil && info.IsDir() {
					name = filepath.Join(name, path.Base(args[1]))
				}
				n, err := a.extract(ctx, h, b, args[1], name)
				if err != nil {
					return err
				}
				return a.list(map[string]any{"file": name, "bytes": n}, []string{"FILE", "SIZE"},
					[][]string{{name, humanize.IBytes(uint64(n))}}, "")
			})
		}}
	c.Flags().StringVar(&from, "from", "", "the destination to read from")
	c.Flags().StringVarP(&out, "output", "o", ".", "a new file, or a folder")
	return c
}

func (a *commandLine) extract(ctx context.Context, h *backup.Handler, b catalog.Stored, file, to string) (n int64,
	err error) {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	progress, end := a.backupProgress()
	n, err = h.File(ctx, b, file, f, progress)
	end()
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, os.Remove(to))
	}
	return n, err
}

func (a *commandLine) backupCompareCommand() *cobra.Command {
	var from string
	c := &cobra.Command{Use: "compare ID ID", Short: "Show how two backups differ: tables, rows, files",
		Args: cobra.ExactArgs(2),
		Long: `Reads both archives. A table is the same when its rows are; a file is the same when its content
is.`,
		Example: "  cmsjobs backup compare 20260301T030000Z-k3j2h1 latest",
		RunE: func(c *cobra.Command, args []string) error {
			return a.withBackups(c, func(ctx context.Context, h *backup.Handler) error {
				var two [2]catalog.Stored
				for i, id := range args {
					var err error
					if two[i], err = a.findBackup(ctx, h, catalog.Wanted{ID: id, Destination: from}); err != nil {
						return err
					}
				}
				progress, end := a.backupProgress()
				comparison, err := h.Compare(ctx, two[0], two[1], progress)
				end()
				if err != nil {
					return err
				}
				return a.printComparison(comparison)
			})
		}}
	c.Flags().StringVar(&from, "from", "", "the destination to read")
	return c
}

func (a *commandLine) printComparison(c browse.Comparison) error {
	if a.global.json {
		return a.printJSON(c)
	}
	number := func(n int64) string {
		if n < 0 {
			return "–"
		}
		return strconv.FormatInt(n, 10)
	}
	cells := make([][]string, len(c.Tables))
	for i, t := range c.Tables {
		cells[i] = []string{t.Name, number(t.Before), number(t.After)}
	}
	fmt.Fprintf(a.out, "Tables: %d the same, %d different.\n", c.SameTables, len(c.Tables))
	if len(cells) > 0 {
		if err := a.table([]string{"TABLE", "ROWS BEFORE", "ROWS AFTER"}, cells); err != nil {
			return err
		}
	}
	fmt.Fprintf(a.out, "Files: %d the same, %d added, %d gone, %d changed; %s before, %s after.\n", c.SameFiles,
		c.AddedFiles, c.GoneFiles, c.OtherFiles, humanize.IBytes(uint64(c.BytesBefore)),
		humanize.IBytes(uint64(c.BytesAfter)))
	cells = make([][]string, len(c.Files))
	for i, f := range c.Files {
		cells[i] = []string{display.Printable(f.Name), number(f.Before), number(f.After)}
	}
	if len(cells) == 0 {
		return nil
	}
	return a.table([]string{"FILE", "BYTES BEFORE", "BYTES AFTER"}, cells)
}

func (a *commandLine) backupPruneCommand() *cobra.Command {
	var dry bool
	c := &cobra.Command{Use: "prune", Short: "Remove the backups that retention does not keep", Args: cobra.NoArgs,
		Long: `Removes what no rule keeps (backup.keep, weekly, monthly, min_age). The newest verified backup
of the database, of the files and of both always stays. --dry-run says of every backup whether
it stays, why, and until when, if from now on one backup of everything is made and verified each
day.`,
		Example: "  cmsjobs backup prune --dry-run",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withBackups(c, func(ctx context.Context, h *backup.Handler) error {
				if dry {
					plan, err := h.PrunePlan(ctx)
					return errors.Join(a.printKept(plan), err)
				}
				list, err := h.Prune(ctx)
				if _, sweepErr := h.Sweep(ctx); sweepErr != nil {
					err = errors.Join(err, sweepErr)
				}
				return errors.Join(a.printBackups(list, "Nothing to remove."), err)
			})
		}}
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what stays, why and until when, and what would be deleted")
	return c
}

func (a *commandLine) printKept(plan []backup.Kept) error {
	cells := make([][]string, len(plan))
	gone, freed := 0, int64(0)
	for i, k := range plan {
		stays, until := "goes", ""
		if !k.Keep {
			gone, freed = gone+1, freed+k.Space()
		} else {
			stays, until = "stays", "by hand"
			if !k.Until.IsZero() {
				until = k.Until.UTC().Format(time.DateOnly)
			}
		}
		cells[i] = []string{k.ID, k.Destination, string(k.Status), newestVerification(k.Stored),
			display.Ago(k.Started, a.Now()), stays, until, strings.Join(k.Reasons, "; ")}
	}
	if plan == nil {
		plan = []backup.Kept{}
	}
	a.printf("%s", display.Sprintf("Would delete %d of %d {backup|backups}, %s. Nothing was deleted.", gone, len(plan),
		humanize.IBytes(uint64(freed))))
	return a.list(plan, []string{"ID", "DESTINATION", "STATUS", "VERIFIED", "MADE", "", "UNTIL", "WHY"}, cells,
		"No backups.")
}

func (a *commandLine) backupSweepCommand() *cobra.Command {
	return &cobra.Command{Use: "sweep", Short: "Remove what interrupted verifications and restores left behind",
		Args: cobra.NoArgs,
		Long: `Removes the temporary databases (cmsjobs_verify_…) and folders of verifications and restores
whose process is dead. Each backup does it too. Databases of that name which belong to another
installation on the same server stay.`,
		Example: "  cmsjobs backup sweep",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withBackups(c, func(ctx context.Context, h *backup.Handler) error {
				removed, err := h.Sweep(ctx)
				cells := make([][]string, len(removed))
				for i, name := range removed {
					cells[i] = []string{name}
				}
				if removed == nil {
					removed = []string{}
				}
				return errors.Join(a.list(removed, []string{"REMOVED"}, cells, "Nothing was left."), err)
			})
		}}
}

func (a *commandLine) backupKeyCommand() *cobra.Command {
	return &cobra.Command{Use: "key", Short: "Show the public key that this installation's backups are signed with",
		Args: cobra.NoArgs,
		Long: `Each manifest file is signed with a key that this installation made for itself. A new server
restores these backups without being asked to (--trust-unknown) when its setting
backup.trusted_keys has this key. Write it down beside the age identity.`,
		Example: "  cmsjobs backup key",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withBackups(c, func(ctx context.Context, h *backup.Handler) error {
				key, err := h.PublicKey(ctx)
				if err != nil {
					return err
				}
				if a.global.json {
					return a.printJSON(map[string]string{"public_key": key})
				}
				_, err = fmt.Fprintln(a.out, key)
				return err
			})
		}}
}
