package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup"
)

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
	for i, k := range plan {
		stays, until := "goes", ""
		if k.Keep {
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
