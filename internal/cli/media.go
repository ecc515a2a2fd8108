package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/isolate"
	"github.com/cmsjobs/cmsjobs/internal/handlers/media/picture"
)

func (a *commandLine) mediaCommand() *cobra.Command {
	c := &cobra.Command{Use: "media", Short: "Make and check thumbnails by hand",
		Example: "  cmsjobs --cms /var/www/site media regenerate --only-missing\n  cmsjobs --cms /var/www/site media " +
			"check"}
	c.AddCommand(a.mediaRegenerateCommand(), a.mediaCheckCommand(), a.mediaRenderCommand())
	return c
}

func (a *commandLine) mediaRegenerateCommand() *cobra.Command {
	var o media.RegenerateOptions
	var since string
	c := &cobra.Command{Use: "regenerate", Short: "Make thumbnails now, without the queue", Args: cobra.NoArgs,
		Long: `Makes the thumbnails of all pictures, or of those that the flags choose. It may be stopped at
any time; it then says with which --after it goes on.`,
		Example: "  cmsjobs media regenerate --only-missing\n  cmsjobs media regenerate --folder 3 --since " +
			"2026-01-01\n  cmsjobs media regenerate --ids 5,6,7",
		RunE: func(c *cobra.Command, _ []string) error {
			if since != "" {
				at, err := time.Parse(time.DateOnly, since)
				if err != nil {
					return app.Usagef("--since is a day like 2026-01-31, not %q", since)
				}
				o.Filter.Since = at
			}
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				return a.regenerate(ctx, r, o)
			})
		}}
	f := c.Flags()
	f.BoolVar(&o.OnlyMissing, "only-missing", false, "skip thumbnails that are up to date")
	f.StringSliceVar(&o.Filter.IDs, "ids", nil, "only these rows of media_files")
	f.StringVar(&o.Filter.Folder, "folder", "", "only this media folder's id")
	f.StringVar(&o.Filter.After, "after", "", "continue after this id")
	f.StringVar(&since, "since", "", "only files that changed since this day")
	return c
}

// offHere says why a type cannot run beside this site.
func offHere(r *app.Services, jobType string) error {
	return app.Usagef("%s is off here: %s", jobType, r.Off[jobType])
}

func (a *commandLine) regenerate(ctx context.Context, r *app.Services, o media.RegenerateOptions) error {
	if r.Handlers.Media == nil {
		return offHere(r, media.ProcessImage.Name)
	}
	var set func(int64)
	end := func() {}
	done, err := r.Handlers.Media.Regenerate(ctx, o, func(p media.Progress) {
		if set == nil {
			set, end = a.progress(p.Total, "pictures")
		}
		set(p.Done)
		if p.Err != nil {
			fmt.Fprintf(a.Err, "%s: %s\n", display.Printable(p.URL), display.Printable(p.Err.Error()))
		}
	})
	end()
	if err != nil {
		if done.Last != "" {
			err = fmt.Errorf("%w\nTo go on: cmsjobs media regenerate --after %s", err, done.Last)
		}
		return err
	}
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	answer := map[string]any{"pictures": done.Done, "made": done.Made, "skipped": done.Skipped, "failed": done.Failed}
	if err := a.list(answer, []string{"PICTURES", "MADE", "SKIPPED", "FAILED"},
		[][]string{{n(done.Done), n(done.Made), n(done.Skipped), n(done.Failed)}}, ""); err != nil {
		return err
	}
	if done.Failed > 0 {
		return fmt.Errorf("%d pictures could not be processed; they are named above", done.Failed)
	}
	return nil
}

func (a *commandLine) mediaCheckCommand() *cobra.Command {
	var o media.CheckOptions
	c := &cobra.Command{Use: "check", Short: "List missing thumbnails and orphans", Args: cobra.NoArgs,
		Long:    "Lists missing thumbnails, lost originals and unused files. Without --remove nothing changes.",
		Example: "  cmsjobs media check\n  cmsjobs media check --remove",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				if r.Handlers.Media == nil {
					return offHere(r, media.ProcessImage.Name)
				}
				var set func(int64)
				end := func() {}
				report, err := r.Handlers.Media.Check(ctx, o, func(done, total int64) {
					if set == nil {
						set, end = a.progress(total, "pictures")
					}
					set(done)
				})
				end()
				if err != nil {
					return err
				}
				return a.printMediaReport(report)
			})
		}}
	c.Flags().BoolVar(&o.Remove, "remove", false, "delete the orphans")
	c.Flags().BoolVar(&o.Unwanted, "unwanted", false, "count thumbnails of sizes that are not wanted now as orphans")
	return c
}

// mediaRenderCommand is the other end of media.isolate: a worker starts it for one
// picture.
func (a *commandLine) mediaRenderCommand() *cobra.Command {
	return &cobra.Command{Use: "render", Short: "Render one picture for a worker", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return isolate.Serve(a.in, a.out, picture.Generator.Render) }}
}

// filesShown bounds the lists of files on a terminal; --json has them all.
const filesShown = 20

func (a *commandLine) printMediaReport(report media.Report) error {
	if a.global.json {
		return a.printJSON(report)
	}
	var orphans []string
	for _, o := range report.Orphans {
		orphans = append(orphans, fmt.Sprint(o))
	}
	for _, part := range []struct {
		name  string
		files []string
	}{{"missing thumbnails", report.Missing}, {"lost originals", report.Lost}, {"orphans", orphans}} {
		fmt.Fprintf(a.out, "%s: %d\n", part.name, len(part.files))
		for i, f := range part.files {
			if i == filesShown {
				fmt.Fprintf(a.out, "  … and %d more (--json lists all)\n", len(part.files)-i)
				break
			}
			fmt.Fprintln(a.out, "  "+display.Printable(f))
		}
	}
	if len(report.Missing) > 0 || len(report.Lost) > 0 {
		return errors.New("thumbnails are missing: cmsjobs media regenerate --only-missing makes them")
	}
	return nil
}
