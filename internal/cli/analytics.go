package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/handlers/analytics"
	"github.com/cmsjobs/cmsjobs/templates"
)

func (a *commandLine) analyticsCommand() *cobra.Command {
	c := &cobra.Command{Use: "analytics", Short: "Import access logs and write reports of visits",
		Example: "  cmsjobs analytics import /var/log/nginx/access.log*\n  cmsjobs analytics report --range " +
			"2026-01-01..2026-01-31 --format html -o january.html"}
	c.AddCommand(a.analyticsImportCommand(), a.analyticsProcessCommand(), a.analyticsReportCommand())
	return c
}

func (a *commandLine) analyticsImportCommand() *cobra.Command {
	var from analytics.Log
	c := &cobra.Command{Use: "import FILE...", Short: "Read access logs of nginx, Apache or Caddy, plain or gzipped",
		Args: cobra.MinimumNArgs(1),
		Long: `Reads access logs. The same log may be given again, also when it has grown, was cut, rotated or
compressed: a view that is stored already is recognised by its content. The part of a log that
was read before is skipped; --again reads it, for example after views were deleted. Where
several web servers serve one site, name each with --server: views that are equal in all but the
visitor count for each of them. Afterwards "cmsjobs analytics process" (or the hourly job) adds
them up.`,
		Example: "  cmsjobs analytics import access.log\n  cmsjobs analytics import --host www.example.com " +
			"access.log.*.gz\n  cmsjobs analytics import --server web2 web2/access.log",
		RunE: func(c *cobra.Command, files []string) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				cells := [][]string{}
				all := map[string]analytics.Imported{}
				for _, name := range files {
					from.Name = name
					done, err := a.importLog(ctx, r, from)
					if err != nil {
						return fmt.Errorf("%s: %w", name, err)
					}
					n := func(v int64) string { return strconv.FormatInt(v, 10) }
					all[name] = done
					cells = append(cells, []string{name, n(done.Lines), n(done.Views), n(done.Skipped), n(done.Bad),
						n(done.Already), humanize.IBytes(uint64(done.Before))})
				}
				return a.list(all, []string{"LOG", "LINES", "VIEWS", "SKIPPED", "BAD", "KNOWN", "READ BEFORE"}, cells,
					"")
			})
		}}
	c.Flags().StringVar(&from.Host, "host", "", "the site's host, for logs that do not name it (default: the CMS's)")
	c.Flags().BoolVar(&from.Again, "again", false, "read all of each log, also what was read before")
	c.Flags().StringVar(&from.Server, "server", "", "which of several web servers wrote the logs: any name, always "+
		"the same")
	return c
}

func (a *commandLine) importLog(ctx context.Context, r *app.Services, from analytics.Log) (analytics.Imported, error) {
	f, err := os.Open(from.Name)
	if err != nil {
		return analytics.Imported{}, err
	}
	defer f.Close()
	size := int64(-1)
	if info, err := f.Stat(); err == nil {
		size = info.Size()
	}
	if from.Host == "" {
		from.Host = app.SiteName(r.Site)
	}
	set, end := a.byteProgress(size, from.Name)
	defer end()
	return r.Handlers.Analytics.Import(ctx, from, f, func(done int64) { set(done, "") })
}

func (a *commandLine) analyticsProcessCommand() *cobra.Command {
	var span string
	c := &cobra.Command{Use: "process", Short: "Summarise visits now, without the queue",
		Example: "  cmsjobs analytics process\n  cmsjobs analytics process --range 2026-01-01..2026-01-31",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p := analytics.ProcessPayload{}
			if span != "" {
				days, err := analytics.ParseDays(span)
				if err != nil {
					return app.UsageError{Err: err}
				}
				p.DateRange = &days
			}
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				done, err := r.Handlers.Analytics.Process(ctx, p)
				if err != nil {
					return err
				}
				return a.summary(done, done.Summary())
			})
		}}
	c.Flags().StringVar(&span, "range", "", "days as 2026-01-01..2026-01-31, 2026-01-31, 2026-W05, 2026-01 (default: "+
		"what changed)")
	return c
}

func (a *commandLine) analyticsReportCommand() *cobra.Command {
	var span, format, out, host string
	var only []string
	var limit int
	c := &cobra.Command{Use: "report", Short: "Write a report as HTML, CSV or JSON",
		Example: "  cmsjobs analytics report --range 2026-01-01..2026-01-31 --format html -o january.html\n  cmsjobs " +
			"analytics report --range 2026-W05 --format csv\n  cmsjobs analytics report --range 2026-01 " +
			"--filter page:/news " +
			"--filter country:VN", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			days, err := analytics.ParseDays(span)
			if err != nil {
				return app.UsageError{Err: err}
			}
			var filters []analytics.Filter
			for _, text := range only {
				f, err := analytics.ParseFilter(text)
				if err != nil {
					return app.UsageError{Err: err}
				}
				filters = append(filters, f)
			}
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				report, err := r.Handlers.Analytics.Report(ctx, analytics.ReportQuery{
					Since: days.Start, Until: days.End, Site: host, Limit: limit, Filters: filters})
				if err != nil {
					return err
				}
				return a.writeReport(report, format, out)
			})
		}}
	c.Flags().StringVar(&span, "range", "", "days as 2026-01-01..2026-01-31, 2026-01-31, 2026-W05, 2026-01 or 2026")
	c.Flags().StringVar(&format, "format", "html", "html, csv or json")
	c.Flags().StringVarP(&out, "output", "o", "", "file to write (default: standard output)")
	c.Flags().StringVar(&host, "host", "", "only this host")
	c.Flags().StringArrayVar(&only, "filter", nil, "only visits that fit, such as page:/news, goal:Order or referrer: "+
		"(direct); may be repeated, and all must fit")
	limitFlag(c, &limit, 20, "entries of each list")
	_ = c.MarkFlagRequired("range") // the flag is there
	return c
}

func (a *commandLine) writeReport(report analytics.Report, format, out string) (err error) {
	write := map[string]func(io.Writer) error{
		"html": func(w io.Writer) error { return analytics.WriteHTML(w, templates.Report(), report) },
		"csv":  func(w io.Writer) error { return analytics.WriteCSV(w, report) },
		"json": func(w io.Writer) error { return analytics.WriteJSON(w, report) },
	}[format]
	if write == nil {
		return app.Usagef("--format is html, csv or json, not %q", format)
	}
	if out == "" {
		return write(a.out)
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
