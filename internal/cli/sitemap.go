package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/handlers/sitemap"
)

// errNoFolder says why there are no sitemaps here.
var errNoFolder = app.UsageError{Err: errors.New("where the sitemap goes is not known: name the CMS's folder (--cms " +
	"DIR), or set sitemap.dir")}

// noSitemap says why there are none here.
func noSitemap(r *app.Services) error {
	if r.Off[sitemap.Generate.Name] != "" {
		return offHere(r, sitemap.Generate.Name)
	}
	return errNoFolder
}

func (a *commandLine) sitemapCommand() *cobra.Command {
	c := &cobra.Command{Use: "sitemap", Short: "Write and check the sitemap by hand",
		Example: "  cmsjobs --cms /var/www/site sitemap generate\n  cmsjobs --cms /var/www/site sitemap check"}
	var force, dry bool
	generate := &cobra.Command{Use: "generate", Short: "Write the sitemap now, without the queue",
		Example: "  cmsjobs sitemap generate --force\n  cmsjobs sitemap generate --dry-run", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				if dry {
					return a.previewSitemap(ctx, r)
				}
				return a.writeSitemap(ctx, r, force)
			})
		}}
	generate.Flags().BoolVar(&force, "force", false, "also when nothing changed")
	generate.Flags().BoolVar(&dry, "dry-run", false,
		"only show what would be listed, with some addresses of each table")
	c.AddCommand(generate, &cobra.Command{Use: "check", Short: "Check the files against sitemaps.org's rules and the " +
		"database", Example: "  cmsjobs sitemap check --json", Args: cobra.NoArgs,
		Long: "Reads the files in the folder and reports what is wrong with them.\n\nExit codes: 0 no problems · 1 " +
			"problems found",
		RunE: func(c *cobra.Command, _ []string) error { return a.withServices(c, a.checkSitemap) }})
	return c
}

func (a *commandLine) writeSitemap(ctx context.Context, r *app.Services, force bool) error {
	if r.Handlers.Sitemap == nil {
		return noSitemap(r)
	}
	set, end := a.stages("sitemap")
	result, err := r.Handlers.Sitemap.Write(ctx, force, set)
	end()
	if err != nil {
		return err
	}
	return a.summary(result, result.Summary())
}

// previewSitemap shows what a map would have; nothing is written.
func (a *commandLine) previewSitemap(ctx context.Context, r *app.Services) error {
	if r.Handlers.Sitemap == nil {
		return noSitemap(r)
	}
	list, err := r.Handlers.Sitemap.Preview(ctx)
	if err != nil {
		return err
	}
	var cells [][]string
	urls, skipped := 0, 0
	for _, p := range list {
		urls, skipped = urls+p.URLs, skipped+p.SkippedRows
		cells = append(cells, []string{p.Model, p.Table, strconv.Itoa(p.URLs), strconv.Itoa(p.SkippedRows),
			strings.Join(p.First, "\n")})
	}
	if len(list) > 0 {
		a.printf("%s", display.Sprintf("The sitemap would have %d {address|addresses}; %d {row is|rows are} left out. "+
			"Nothing was written.", urls, skipped))
	}
	if err := a.list(list, []string{"CONTENT", "TABLE", "URLS", "SKIPPED", "FIRST"}, cells,
		"No content."); err != nil ||
		a.global.json {
		return err
	}
	for _, p := range list {
		for _, s := range p.Skipped {
			a.say("skipped: %s %s: %s", s.Table, s.ID, display.Printable(s.Reason))
		}
	}
	return nil
}

func (a *commandLine) checkSitemap(ctx context.Context, r *app.Services) error {
	if r.Handlers.Sitemap == nil {
		return noSitemap(r)
	}
	set, end := a.stages("checking")
	report, err := r.Handlers.Sitemap.Check(ctx, set)
	end()
	if err != nil {
		return err
	}
	n := func(v int) string { return strconv.Itoa(v) }
	if err := a.list(report, []string{"FILES", "URLS", "PROBLEMS", "MISSING", "EXTRA", "STALE", "TWICE"},
		[][]string{{n(report.Files), n(report.URLs), n(report.Found), n(report.Missing), n(report.Extra),
			n(report.Stale), n(report.Twice)}}, ""); err != nil {
		return err
	}
	if !a.global.json {
		for _, p := range report.Problems {
			fmt.Fprintln(a.out, display.Printable(fmt.Sprint(p)))
		}
	}
	if !report.OK() {
		return errors.New("the sitemap has faults: cmsjobs sitemap generate --force writes it again")
	}
	return nil
}
