package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/config"
	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/display"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/schema"
	"github.com/cmsjobs/cmsjobs/internal/schema/texts"
)

func (a *commandLine) typesCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "types",
		Short: "List the job types that can be enqueued",
		Long: `Lists the job types that can be enqueued here, with an example of each payload. --all lists
every type that this program can run: those of parts that are not configured, and those that
only the service itself enqueues. It needs no database. cmsjobs types show lists the fields of one.`,
		Example: "  cmsjobs types\n  cmsjobs types --all --json\n  cmsjobs types show mail.send",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !all {
				return a.withServices(c, func(_ context.Context, r *app.Services) error {
					return a.listTypes(ops.Types(r.Registry, r.Config.Queue.Default, false))
				})
			}
			registry, queue, done, err := a.allTypes()
			if err != nil {
				return err
			}
			defer done()
			return a.listTypes(ops.Types(registry, queue, true))
		},
	}
	c.Flags().BoolVar(&all, "all", false, "every type that this program can run")
	c.AddCommand(a.typesShowCommand())
	return c
}

func (a *commandLine) listTypes(views []ops.TypeView) error {
	cells := ops.Each(views, func(v ops.TypeView) []string {
		return []string{v.Name, v.Queue, strconv.Itoa(v.MaxAttempts), milliseconds(v.TimeoutMS).String(),
			string(v.Example)}
	})
	return a.list(ops.Items[ops.TypeView]{Items: views}, []string{"TYPE", "QUEUE", "ATTEMPTS", "TIMEOUT", "PAYLOAD"},
		cells, "No types.")
}

func (a *commandLine) typesShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show TYPE",
		Short: "Show one job type and the fields of its payload",
		Long: `Shows a job type: its policy, and each field of its payload with type, unit, default and
synonyms. With --json it prints the payload's JSON Schema. It needs no database, except for the
types of other programs' workers.`,
		Example:           "  cmsjobs types show mail.send\n  cmsjobs types show backup.generate --json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTypes,
		RunE: func(c *cobra.Command, args []string) error {
			registry, queue, done, err := a.allTypes()
			if err != nil {
				return err
			}
			defer done()
			if _, ours := registry.Lookup(args[0]); !ours && a.showAnnounced(c, args[0]) == nil {
				return nil
			}
			return a.showType(registry, queue, args[0])
		},
	}
}

// showAnnounced shows a type that another program announced; an error where there
// is none, or no database.
func (a *commandLine) showAnnounced(c *cobra.Command, name string) error {
	return a.withServices(c, func(_ context.Context, r *app.Services) error {
		if _, known := r.Registry.Known(name); !known {
			return jobs.ErrNotFound
		}
		return a.showType(r.Registry, r.Config.Queue.Default, name)
	})
}

// allTypes are the types that this program can run, without a database, and the
// queue of those that name none.
func (a *commandLine) allTypes() (registry *jobs.Registry, queue string, done func(), err error) {
	l, err := a.load()
	if err != nil {
		return nil, "", nil, err
	}
	registry = jobs.NewRegistry()
	r, err := a.WithoutDatabase(l)
	if err != nil {
		return nil, "", nil, err
	}
	done = func() { a.closing(r) }
	if err := app.RegisterKinds(registry, r); err != nil {
		done()
		return nil, "", nil, err
	}
	return registry, l.Queue.Default, done, nil
}

func (a *commandLine) showType(registry *jobs.Registry, queue, name string) error {
	entry, known := registry.Known(name)
	if !known {
		return fmt.Errorf("%w (%w)", ops.UnknownType(registry, name), jobs.ErrNotFound)
	}
	views := ops.Types(registry, queue, true)
	v := views[slices.IndexFunc(views, func(v ops.TypeView) bool { return v.Name == entry.Type })]
	if a.global.json {
		return a.printJSON(v)
	}
	fmt.Fprintf(a.out, "%s: %s\n", v.Name, v.About)
	if len(v.Aliases) > 0 {
		fmt.Fprintf(a.out, "Also called %s.\n", strings.Join(v.Aliases, ", "))
	}
	fmt.Fprintf(a.out, "%s, at most %s each, queue %s.\n\n", display.Sprintf("%d {attempt|attempts}", v.MaxAttempts),
		milliseconds(v.TimeoutMS), v.Queue)
	if err := a.fieldTable(entry); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.out, "\nExample: cmsjobs enqueue %s '%s'\n", v.Name, v.Example)
	return err
}

// fieldTable prints the fields of a type's payload.
func (a *commandLine) fieldTable(entry jobs.Entry) error {
	cells := fieldRows(entry.Type, "", entry.Schema)
	if len(cells) == 0 {
		_, err := fmt.Fprintln(a.out, "The payload has no fields.")
		return err
	}
	return a.table([]string{"FIELD", "TYPE", "DEFAULT", "MEANING"}, cells)
}

func fieldRows(jobType, path string, o *schema.Object) (rows [][]string) {
	for _, f := range o.Fields {
		meaning := cmp.Or(f.Help, texts.Of("en", jobType, path+f.Name))
		if f.Required {
			meaning = "Required. " + meaning
		}
		if f.Choices != nil {
			meaning += " One of: " + strings.Join(f.Choices, ", ") + "."
		}
		if f.Synonyms != nil {
			meaning += " Also: " + strings.Join(f.Synonyms, ", ") + "."
		}
		kind := f.Text()
		if f.Unit != "" {
			kind += " (" + f.Unit + ")"
		}
		rows = append(rows, []string{path + f.Name, kind, string(f.Default), meaning})
		inner := f.Object
		if f.Items != nil {
			inner = f.Items.Object
		}
		if inner != nil {
			rows = append(rows, fieldRows(jobType, path+f.Name+".", inner)...)
		}
	}
	return rows
}

// helpOfType prints what "enqueue --help TYPE" asks for; false where it names no type.
func (a *commandLine) helpOfType(name string) bool {
	registry, queue, done, err := a.allTypes()
	if err != nil {
		return false
	}
	defer done()
	if _, known := registry.Lookup(name); !known {
		return false
	}
	return a.showType(registry, queue, name) == nil
}

// completeTypes completes the name of a type, without a database.
func (a *commandLine) completeTypes(_ *cobra.Command, args []string, begun string) ([]string,
	cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.typeNames(begun), cobra.ShellCompDirectiveNoFileComp
}

// typeNames are the types that begin so, each with what it does.
func (a *commandLine) typeNames(begun string) (names []string) {
	registry, _, done, err := a.allTypes()
	if err != nil {
		return nil
	}
	defer done()
	for _, name := range registry.Names() {
		entry, _ := registry.Lookup(name)
		if strings.HasPrefix(name, begun) {
			names = append(names, name+"\t"+texts.Of("en", entry.Type, texts.About))
		}
	}
	return names
}

// atMost bounds how many names a completion offers.
const atMost = 50

// completeFromDatabase completes with what a question to the database finds, and
// with nothing where the database does not answer.
func (a *commandLine) completeFromDatabase(ask func(context.Context, *app.Services) ([]string, error)) func(
	*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		var found []string
		err := a.withServices(c, func(ctx context.Context, r *app.Services) error {
			names, err := ask(ctx, r)
			for _, name := range names {
				if strings.HasPrefix(name, begun) && !slices.Contains(args, name) && len(found) < atMost {
					found = append(found, name)
				}
			}
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeQueues completes names of queues.
func (a *commandLine) completeQueues() func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return a.completeFromDatabase(func(ctx context.Context, r *app.Services) ([]string, error) {
		stats, err := r.History.Stats(ctx)
		return ops.Each(stats.Queues, func(q jobs.QueueStats) string { return q.Queue }), err
	})
}

// completeJobs completes ids of the newest jobs of some statuses; none is all.
func (a *commandLine) completeJobs(statuses ...jobs.Status) func(*cobra.Command, []string, string) ([]string,
	cobra.ShellCompDirective) {
	return a.completeFromDatabase(func(ctx context.Context, r *app.Services) ([]string, error) {
		list, err := r.History.Jobs(ctx, jobs.Filter{Statuses: statuses}, jobs.Page{Limit: atMost})
		return ops.Each(list.Items, func(j jobs.Record) string {
			return ops.IDOf(j) + "\t" + j.Type + ", " + string(j.Status)
		}), err
	})
}

// completeEntries completes names of schedule entries.
func (a *commandLine) completeEntries() func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return a.completeFromDatabase(func(_ context.Context, r *app.Services) ([]string, error) {
		return r.EntryNames()
	})
}

// completeSettings completes the key of --set.
func (a *commandLine) completeSettings(_ *cobra.Command, _ []string, begun string) (keys []string,
	_ cobra.ShellCompDirective) {
	l, err := config.Load(config.Sources{Environ: []string{"CMSJOBS_CONFIG=" + os.DevNull}})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, v := range l.Values() {
		if strings.HasPrefix(v.Path, begun) {
			keys = append(keys, v.Path+"=")
		}
	}
	return keys, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeFlags completes the values of the flags that many commands have.
func (a *commandLine) completeFlags(c *cobra.Command) {
	values := map[string]func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective){
		"status": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"queued", "processing", "completed", "failed", "cancelled"},
				cobra.ShellCompDirectiveNoFileComp
		},
		"type": func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			return a.typeNames(begun), cobra.ShellCompDirectiveNoFileComp
		},
		"queue": a.completeQueues(),
		"set":   a.completeSettings,
		"site":  a.completeSites,
		"log-level": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp
		},
	}
	for name, complete := range values {
		if c.Flag(name) != nil { // also a flag of all commands
			_ = c.RegisterFlagCompletionFunc(name, complete) // an error says that it has one
		}
	}
	for _, child := range c.Commands() {
		a.completeFlags(child)
	}
}
