package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/database"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup"
	"github.com/cmsjobs/cmsjobs/internal/handlers/backup/restore"
)

func (a *commandLine) backupMomentsCommand() *cobra.Command {
	return &cobra.Command{Use: "moments", Short: "List which moments of the database can be restored",
		Args: cobra.NoArgs,
		Long: `MySQL and MariaDB: the binary log is archived behind the backups where backup.log allows it, and
any second in these spans can be restored (cmsjobs backup restore --at). Times are UTC.`,
		Example: "  cmsjobs backup moments",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withBackups(c, func(ctx context.Context, h *backup.Handler) error {
				reach, err := h.LogReach(ctx)
				var cells [][]string
				for _, name := range slices.Sorted(maps.Keys(reach)) {
					for i, w := range reach[name].Windows {
						missing := ""
						if i == len(reach[name].Windows)-1 {
							missing = reach[name].Missing
						}
						cells = append(cells, []string{name, utc(w.From), utc(w.Until),
							humanize.IBytes(uint64(reach[name].Bytes)), missing})
					}
				}
				nothing := "None but those of backups; cmsjobs doctor says what is missing."
				columns := []string{"DESTINATION", "FROM", "UNTIL", "LOG", "MISSING AFTER"}
				return errors.Join(a.list(reach, columns, cells, nothing), err)
			})
		}}
}

func utc(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format(time.DateTime)
}

// restoreMoment shows what a restore to a moment would do, and does it once that is
// confirmed.
func (a *commandLine) restoreMoment(c *cobra.Command, o restoreOptions, args []string) error {
	if len(args) > 0 {
		return app.Usagef("--at chooses the backup: name none")
	}
	return a.withServices(c, func(ctx context.Context, r *app.Services) error {
		h := r.Handlers.Backup
		if h == nil {
			return app.Usagef("where backups go is not known: name the CMS's folder (--cms DIR), or set backup.dir")
		}
		zone, err := r.Site.Zone(ctx)
		if err != nil { // perhaps there is no database any more
			zone = time.UTC
		}
		at, err := backup.ParseMoment(o.at, zone) // of the CMS's clock
		if err != nil {
			return app.UsageError{Err: fmt.Errorf("--at: %w", err)}
		}
		q, err := h.FindMoment(ctx, at, o.from)
		if err != nil {
			return err
		}
		q.Confirm, q.SkipSafety = o.request.Confirm, o.request.SkipSafety
		if q.IntoDSN, err = intoDSN(h, o.into); err != nil {
			return err
		}
		if o.dry || q.Confirm == "" {
			return a.planMoment(ctx, h, q, o.dry)
		}
		progress, end := a.backupProgress()
		done, err := h.Moment(ctx, q, progress)
		end()
		if err != nil {
			return err
		}
		return a.printMoment(done)
	})
}

// intoDSN is that of a name on the site's server, or the one that was named.
func intoDSN(h *backup.Handler, into string) (string, error) {
	switch {
	case into == "":
		return "", nil
	case backup.IsDatabaseName(into):
		dsn, err := h.IntoNamed(into)
		if err != nil {
			return "", app.UsageError{Err: err}
		}
		return dsn, nil
	}
	dsn, err := database.DriverDSN(into)
	if err != nil {
		return "", app.UsageError{Err: fmt.Errorf("--into: %w", err)}
	}
	return dsn, nil
}

func (a *commandLine) planMoment(ctx context.Context, h *backup.Handler, q restore.MomentRequest, dry bool) error {
	p, err := h.PlanMoment(ctx, q)
	if err != nil {
		return err
	}
	if a.global.json {
		err = a.printJSON(p)
	} else {
		err = a.describeMoment(p)
	}
	switch {
	case err != nil:
		return err
	case len(p.Refused) > 0:
		return fmt.Errorf("nothing was changed: %w: %s", restore.ErrUnfit, strings.Join(p.Refused, "; "))
	case dry:
		return nil
	}
	return app.Usagef("nothing was changed: say it again with --confirm %s", p.Token)
}

func (a *commandLine) describeMoment(p restore.MomentPlan) error {
	if err := a.summary(p, p.Summary()); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "Log: %s in %s, from %s to %s; archived until %s UTC.\n", humanize.IBytes(uint64(p.Bytes)),
		display.Sprintf("%d {segment|segments}", p.Segments), p.From, p.To, utc(p.Until))
	for _, text := range p.Refused {
		fmt.Fprintf(a.out, "It cannot be restored there: %s.\n", display.Printable(text))
	}
	if len(p.Refused) == 0 {
		fmt.Fprintf(a.out, "To do it: --confirm %s\n", p.Token)
	}
	return nil
}

func (a *commandLine) printMoment(done restore.MomentResult) error {
	if err := a.summary(done, done.Summary()); err != nil {
		return err
	}
	if len(done.Problems) > 0 {
		return errors.New("what was restored may differ from what was there")
	}
	return nil
}
