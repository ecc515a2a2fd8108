package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/timespan"
	"github.com/cmsjobs/cmsjobs/internal/web/access"
)

func (a *commandLine) accessCommand() *cobra.Command {
	c := &cobra.Command{Use: "access", Short: "List and unlock addresses that are locked after failed sign-ins",
		Example: "  cmsjobs access locks\n  cmsjobs access unlock 203.0.113.7"}
	c.AddCommand(a.accessLocksCommand(), a.accessUnlockCommand())
	return c
}

func (a *commandLine) accessLocksCommand() *cobra.Command {
	return &cobra.Command{Use: "locks", Short: "List locked addresses", Example: "  cmsjobs access locks --json",
		Args: cobra.NoArgs,
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
					cells[i] = []string{l.Address, who, strconv.Itoa(l.Failures), l.Until.Format(time.DateTime),
						l.ID[:12]}
				}
				return a.list(locks, []string{"ADDRESS", "LOCKED", "FAILURES", "UNTIL", "ID"}, cells,
					"No address is locked.")
			})
		}}
}

func (a *commandLine) accessUnlockCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{Use: "unlock [ADDRESS]", Short: "Let an address sign in again at once",
		Args: cobra.MaximumNArgs(1),
		Long: "Lifts the locks of an address (an IPv4 address, or any address of an IPv6 /64 network), or all of " +
			"them with --all.",
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
					return a.list(map[string]any{"deleted": n}, []string{"COUNTS DELETED"},
						[][]string{{strconv.FormatInt(n, 10)}}, "")
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

func (a *commandLine) tokenCommand() *cobra.Command {
	c := &cobra.Command{Use: "token", Short: "Create, list and revoke tokens of programs that use the HTTP API",
		Example: "  cmsjobs token create shop --scopes enqueue --types mail.send\n  cmsjobs token list"}
	c.AddCommand(a.tokenCreateCommand(), a.tokenListCommand(), &cobra.Command{
		Use: "revoke ID", Short: "End a token at once", Example: "  cmsjobs token revoke 3f9a…",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				if err := access.NewStore(r.OwnDB, r.Now).RevokeToken(ctx, args[0]); err != nil {
					return err
				}
				return a.list(map[string]any{"revoked": args[0]}, []string{"REVOKED"}, [][]string{{args[0]}}, "")
			})
		}})
	return c
}

func (a *commandLine) tokenCreateCommand() *cobra.Command {
	var scopes, kinds []string
	var expires string
	c := &cobra.Command{Use: "create NAME", Short: "Create a token and print it once", Args: cobra.ExactArgs(1),
		Long: `Creates a token for a program. It is printed once and stored as a hash only.
Scopes: read, enqueue, work (run jobs of types that the program registers), operate (retry,
cancel, pause), admin (everything).`,
		Example: "  cmsjobs token create shop --scopes enqueue --types mail.send,sitemap.generate --expires 365d",
		RunE: func(c *cobra.Command, args []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				have, err := access.ParseScopes(strings.Join(scopes, " "))
				if err != nil {
					return app.UsageError{Err: err}
				}
				t := access.Token{Name: args[0], Scopes: have, Types: kinds, CreatedBy: "command line"}
				if expires != "" {
					life, err := timespan.Parse(expires)
					if err != nil {
						return app.UsageError{Err: err}
					}
					t.ExpiresAt = r.Now().Add(life)
				}
				t, secret, err := access.NewStore(r.OwnDB, r.Now).CreateToken(ctx, t)
				if err != nil {
					return err
				}
				if a.global.json {
					return a.printJSON(map[string]any{"token": t, "secret": secret})
				}
				_, err = fmt.Fprintf(a.out, "%s\n\nSend it as: Authorization: Bearer %s\nIt is not shown again.\n",
					secret, secret)
				return err
			})
		}}
	c.Flags().StringSliceVar(&scopes, "scopes", []string{"read", "enqueue"}, "what it may do")
	c.Flags().StringSliceVar(&kinds, "types", nil, "types that it may enqueue (default: any)")
	c.Flags().StringVar(&expires, "expires", "", "ends after so long, for example 90d (default: never)")
	return c
}

func (a *commandLine) tokenListCommand() *cobra.Command {
	return &cobra.Command{Use: "list", Short: "List tokens", Example: "  cmsjobs token list --json", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				tokens, err := access.NewStore(r.OwnDB, r.Now).Tokens(ctx)
				if err != nil {
					return err
				}
				cells := make([][]string, len(tokens))
				for i, t := range tokens {
					state := "valid"
					switch {
					case !t.RevokedAt.IsZero():
						state = "revoked"
					case !t.ExpiresAt.IsZero() && t.ExpiresAt.Before(a.Now()):
						state = "expired"
					}
					cells[i] = []string{t.ID, t.Name, t.Scopes.String(), strings.Join(t.Types, ","), state,
						display.Ago(t.UsedAt, a.Now()), t.CreatedAt.Format(time.DateOnly)}
				}
				return a.list(tokens, []string{"ID", "NAME", "SCOPES", "KINDS", "STATUS", "USED", "CREATED"}, cells,
					"No tokens.")
			})
		}}
}
