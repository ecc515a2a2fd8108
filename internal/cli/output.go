package cli

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/phrase"
	"github.com/cmsjobs/cmsjobs/internal/redact"
	"github.com/cmsjobs/cmsjobs/internal/terminal"
)

// printJSON writes one value as the API answers it: in one line for programs, in
// readable lines at a terminal.
func (a *commandLine) printJSON(v any) error {
	indent := ""
	if a.outIsTTY {
		indent = "  "
	}
	return ops.Encode(a.out, v, indent)
}

// terminal are the commands that show figures live.
func (a *commandLine) terminal() terminal.Program {
	return terminal.Program{Now: a.Now, Complete: a.completeJobs(),
		Usage: func(err error) error { return app.UsageError{Err: err} },
		Token: func() string { return environ(a.environ, "CMSJOBS_TOKEN") },
		Open: func(c *cobra.Command, do func(context.Context, terminal.Source) error) error {
			return a.withServices(c, func(ctx context.Context, r *app.Services) error {
				source, err := a.figures(r)
				if err != nil {
					return err
				}
				return do(ctx, source)
			})
		},
		Output: func() terminal.Output {
			keys, is := a.in.(*os.File)
			return terminal.Output{In: a.in, Out: a.out, TTY: a.outIsTTY && is && term.IsTerminal(int(keys.Fd())),
				JSON:   a.global.json,
				Colour: environ(a.environ, "NO_COLOR") == ""}
		}}
}

// environ is a variable of an environment; "" is none.
func environ(variables []string, name string) string {
	for _, v := range variables {
		if value, is := strings.CutPrefix(v, name+"="); is {
			return value
		}
	}
	return ""
}

// figures are those of the configuration's database.
func (a *commandLine) figures(r *app.Services) (terminal.Source, error) {
	viewer, err := r.Viewer(a.unmasked)
	if err != nil {
		return nil, err
	}
	scheduler, err := r.Scheduler()
	if err != nil {
		return nil, err
	}
	local := terminal.Local{Site: a.global.site, History: r.History, Schedules: scheduler.Schedules,
		Find: func(ctx context.Context, id string) (jobs.Record, error) { return r.History.JobAmong(ctx, id, nil) },
		Log:  r.History.Log, Viewer: viewer, Now: a.Now}
	if !r.Config.Conditions.Enabled {
		return local, nil
	}
	watched, err := r.Evaluator(nil)
	if err != nil {
		return nil, err
	}
	local.Conditions = func(ctx context.Context) (active []terminal.Condition, err error) {
		for _, s := range watched.Latest(ctx) {
			if s.Active {
				active = append(active, terminal.Condition{Name: s.Name, Severity: string(s.Severity), Active: true,
					Title: s.Title, Detail: s.Detail, Since: s.Since, Fix: strings.ReplaceAll(s.Fix, "`", "")})
			}
		}
		return active, nil
	}
	return local, nil
}

// list prints rows: as JSON what value is, as a table what cells are.
func (a *commandLine) list(value any, heads []string, cells [][]string, nothing string) error {
	if a.global.json {
		return a.printJSON(value)
	}
	if len(cells) == 0 {
		_, err := fmt.Fprintln(a.out, nothing)
		return err
	}
	return a.table(heads, cells)
}

func (a *commandLine) table(heads []string, cells [][]string) error {
	t := table.NewWriter()
	style := table.StyleLight
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	t.AppendHeader(row(heads))
	for _, line := range cells {
		t.AppendRow(row(line))
	}
	for _, line := range strings.Split(t.Render(), "\n") {
		if _, err := fmt.Fprintln(a.out, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}

// summary prints what was done, or would be: as JSON what value is, for people in
// sentences and tables.
func (a *commandLine) summary(value any, s phrase.Summary) error {
	if a.global.json {
		return a.printJSON(value)
	}
	for _, sentence := range s.Sentences {
		text := display.Sprintf(sentence.Form, shownValues(sentence.Args)...)
		if _, err := fmt.Fprintln(a.out, display.Printable(text)); err != nil {
			return err
		}
	}
	for _, t := range s.Tables {
		heads := ops.Each(t.Columns, strings.ToUpper)
		cells := ops.Each(t.Rows, func(row []any) []string {
			return ops.Each(shownValues(row), func(value any) string { return fmt.Sprint(value) })
		})
		if err := a.table(heads, cells); err != nil {
			return err
		}
	}
	return nil
}

// shownValues are values of a summary as a terminal shows them.
func shownValues(values []any) []any {
	return ops.Each(values, func(value any) any {
		switch v := value.(type) {
		case phrase.Size:
			return humanize.IBytes(uint64(max(v, 0)))
		case time.Time:
			return v.UTC().Format(time.DateTime) + " UTC"
		case time.Duration:
			return v.Round(time.Millisecond).String()
		}
		return fmt.Sprint(value)
	})
}

func row(cells []string) table.Row {
	r := make(table.Row, len(cells))
	for i, c := range cells {
		r[i] = display.Printable(c)
	}
	return r
}

// printf prints a sentence for people; programs that asked for JSON get none.
func (a *commandLine) printf(format string, args ...any) {
	if !a.global.json {
		fmt.Fprintf(a.out, format+"\n", args...)
	}
}

// progress shows a bar on a terminal and nothing elsewhere. total −1 is
// unknown. The returned func ends it.
func (a *commandLine) progress(total int64, what string) (set func(done int64), end func()) {
	if !a.StderrIsTTY || a.global.json {
		return func(int64) {}, func() {}
	}
	bar := a.progressBar(total, what)
	// a bar that cannot be drawn harms nobody
	return func(done int64) { _ = bar.Set64(done) }, func() { _ = bar.Finish() }
}

// byteProgress is progress of bytes: their size, how many a second, and the time that is left. note
// names what is at work; "" leaves the last one.
func (a *commandLine) byteProgress(total int64, what string) (set func(done int64, note string), end func()) {
	if !a.StderrIsTTY || a.global.json {
		return func(int64, string) {}, func() {}
	}
	bar := a.progressBar(total, what, progressbar.OptionShowBytes(true), progressbar.OptionUseIECUnits(true))
	return func(done int64, note string) {
		if note != "" {
			bar.Describe(redact.Clip(display.Printable(note), maxProgressNote))
		}
		_ = bar.Set64(done)
	}, func() { _ = bar.Finish() }
}

// maxProgressNote leaves space for the bar on a line.
const maxProgressNote = 40

func (a *commandLine) progressBar(total int64, what string, more ...progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions64(total, append([]progressbar.Option{progressbar.OptionSetWriter(a.Err),
		progressbar.OptionSetDescription(what), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
		progressbar.OptionThrottle(100 * time.Millisecond), progressbar.OptionClearOnFinish()}, more...)...)
}

// stages shows a bar for work whose size is known only while it is done, and
// which has several parts: note names the one that is at work.
func (a *commandLine) stages(what string) (set func(done, total int64, note string), end func()) {
	if !a.StderrIsTTY || a.global.json {
		return func(int64, int64, string) {}, func() {}
	}
	bar := a.progressBar(-1, what)
	return func(done, total int64, note string) {
		if total <= 0 {
			total = -1
		}
		if bar.GetMax64() != total {
			bar.ChangeMax64(total)
		}
		bar.Describe(what + ": " + note)
		_ = bar.Set64(done)
	}, func() { _ = bar.Finish() }
}

func count(n int64) string { return strconv.FormatInt(n, 10) }

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
