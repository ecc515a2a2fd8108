package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/web/access"

	"github.com/cmsjobs/cmsjobs/internal/app"
)

func (a *commandLine) accessCommand() *cobra.Command {
	c := &cobra.Command{Use: "access", Short: "List and unlock addresses that are locked after failed sign-ins",
		Example: "  cmsjobs access locks\n  cmsjobs access unlock 203.0.113.7"}
	c.AddCommand(a.accessLocksCommand(), a.accessUnlockCommand())
	return c
}

func (a *commandLine) accessLocksCommand() *cobra.Command {
	return &cobra.Command{Use: "locks", Short: "List locked addresses", Example: "  cmsjobs access locks --json", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				locks, err := access.NewStore(r.OwnDB, r.Now).Locks(ctx)
				if err != nil {
					return err
				}
				cells := make([][]string, len(locks))
				for i, l := range locks {
					who := "everybody"
					if l.Account {
						who = "one account"
					}
					cells[i] = []string{l.Address, who, strconv.Itoa(l.Failures), l.Until.Format(time.DateTime), l.ID[:12]}
				}
				return a.list(locks, []string{"ADDRESS", "LOCKED", "FAILURES", "UNTIL", "ID"}, cells, "No address is locked.")
			})
		}}
}

func (a *commandLine) accessUnlockCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{Use: "unlock [ADDRESS]", Short: "Let an address sign in again at once", Args: cobra.MaximumNArgs(1),
		Long:    "Lifts the locks of an address (an IPv4 address, or any address of an IPv6 /64 network), or all of them with --all.",
		Example: "  cmsjobs access unlock 203.0.113.7\n  cmsjobs access unlock --all",
		RunE: func(c *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return app.UsageError{Err: fmt.Errorf("name an address, or say --all")}
			}
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				store := access.NewStore(r.OwnDB, r.Now)
				if all {
					n, err := store.UnlockAll(ctx)
					if err != nil {
						return err
					}
					return a.list(map[string]any{"deleted": n}, []string{"COUNTS DELETED"}, [][]string{{strconv.FormatInt(n, 10)}}, "")
				}
				if err := store.Unlock(ctx, args[0]); err != nil {
					return err
				}
				return a.list(map[string]any{"unlocked": args[0]}, []string{"UNLOCKED"}, [][]string{{args[0]}}, "")
			})
		}}
	c.Flags().BoolVar(&all, "all", false, "lift all locks and forget all counts of wrong sign-ins")
	return c
}
