package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cmsjobs/cmsjobs/internal/app"
	"github.com/cmsjobs/cmsjobs/internal/jobs"
	"github.com/cmsjobs/cmsjobs/internal/ops"
	"github.com/cmsjobs/cmsjobs/internal/timespan"
)

// enqueueFlags are what the command enqueue takes besides type and payload.
type enqueueFlags struct {
	queue, delay, at, unique, uuid string
	priority, attempts             int
	force                          bool
}

func (a *commandLine) enqueueCommand() *cobra.Command {
	var o enqueueFlags
	c := &cobra.Command{
		Use:   "enqueue TYPE [PAYLOAD]",
		Short: "Put a job into the queue",
		Long: `Puts a job into the queue. PAYLOAD is a JSON object; - reads it from standard input, @FILE from
a file. It is checked as its handler will check it, and a field that the type does not have is
refused. cmsjobs types lists types and their payloads; cmsjobs enqueue --help TYPE shows the
fields of one.

Where jobs are disabled (queue.enabled, JOBS_ENABLED) the job is run at once, in place.`,
		Example: "  cmsjobs enqueue sitemap.generate '{\"force\":true}'\n  cmsjobs enqueue cmsjobs.probe " +
			"'{\"sleep\":\"2s\"}' --delay 10m\n  cmsjobs enqueue mail.send @mail.json --unique welcome-42",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completeTypes,
		RunE: func(c *cobra.Command, args []string) error {
			n, err := a.spec(o, args)
			if err != nil {
				return err
			}
			return a.enqueue(c, n, o.force)
		},
	}
	f := c.Flags()
	f.StringVar(&o.queue, "queue", "", "the queue (default: the type's)")
	f.StringVar(&o.delay, "delay", "", "due after this: 30s, 2h")
	f.StringVar(&o.at, "at", "", "due at this moment: 2006-01-02T15:04:05Z")
	f.StringVar(&o.unique, "unique", "", "no second job while one with this key waits or runs")
	f.StringVar(&o.uuid, "uuid", "", "the job's name; the same one twice makes one job")
	f.IntVar(&o.priority, "priority", 0, "higher first (tables of the extended layout)")
	f.IntVar(&o.attempts, "max-attempts", 0, "how often it may start (default: the type's)")
	f.BoolVar(&o.force, "force", false, "take a type that this program does not know")
	c.MarkFlagsMutuallyExclusive("delay", "at")
	help := c.HelpFunc()
	c.SetHelpFunc(func(c *cobra.Command, args []string) {
		if words := c.Flags().Args(); len(words) == 0 || !a.helpOfType(words[0]) {
			help(c, args)
		}
	})
	return c
}

// spec reads the job from the flags and arguments.
func (a *commandLine) spec(o enqueueFlags, args []string) (n jobs.Spec, err error) {
	data, err := a.payload(args[1:])
	if err != nil {
		return n, err
	}
	n = jobs.Spec{Type: args[0], Queue: o.queue, UUID: o.uuid, Data: data, Priority: o.priority,
		MaxAttempts: o.attempts, UniqueKey: o.unique}
	if o.delay != "" {
		if n.Delay, err = timespan.Parse(o.delay); err != nil {
			return n, app.UsageError{Err: fmt.Errorf("--delay: %w", err)}
		}
	}
	if o.at != "" {
		if n.RunAt, err = time.Parse(time.RFC3339, o.at); err != nil {
			return n, app.Usagef("--at wants a time like 2006-01-02T15:04:05+07:00")
		}
	}
	return n, nil
}

// enqueue puts a job into the queue, or runs it where jobs are disabled. force
// takes a type that this program does not know.
func (a *commandLine) enqueue(c *cobra.Command, n jobs.Spec, force bool) error {
	return a.withServices(c, func(ctx context.Context, r *app.Services) error {
		entry, known := r.Registry.Known(n.Type)
		if !known && !force {
			return app.Usagef("%w (--force enqueues it for another program)", ops.UnknownType(r.Registry, n.Type))
		}
		if known {
			n.Data = jobs.WithoutType(n.Data, n.Type, entry.Type)
			if err := entry.CheckNew(n.Data); err != nil {
				return app.UsageError{Err: err}
			}
			n.Data = entry.Canonical(n.Data)
		}
		if !r.Config.Queue.Enabled {
			return a.inline(c, r, entry, n)
		}
		if n.Priority != 0 && !r.HasPriorities() {
			return app.Usagef("--priority: the jobs table has no column for it; put the job on a queue that is " +
				"worked first")
		}
		limit := ops.QueueLimit{Known: r.QueueNames}
		if err := limit.Allow(ctx, a.Now(), n.Queue); err != nil {
			return app.UsageError{Err: err}
		}
		receipt, err := r.EnqueueOne(ctx, n)
		if err != nil {
			return err
		}
		if known {
			n.Type = entry.Type
		}
		return a.receipt(n, receipt)
	})
}

func (a *commandLine) payload(args []string) (json.RawMessage, error) {
	text := []byte("{}")
	var err error
	switch {
	case len(args) == 0:
	case args[0] == "-":
		text, err = io.ReadAll(io.LimitReader(a.in, jobs.MaxPayload+1))
	case args[0] != "" && args[0][0] == '@':
		text, err = os.ReadFile(args[0][1:])
	default:
		text = []byte(args[0])
	}
	if err != nil {
		return nil, app.UsageError{Err: fmt.Errorf("reading the payload: %w", err)}
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		return nil, app.Usagef("the payload must be a JSON object, for example {\"force\":true}: %w", errors.Join(err))
	}
	return text, nil
}

func (a *commandLine) receipt(n jobs.Spec, r jobs.Receipt) error {
	if a.global.json {
		return a.printJSON(ops.EnqueuedView(n, r, a.Now()))
	}
	word := "Enqueued"
	if r.Existing {
		word = "It is there already:"
	}
	name := r.UUID
	if r.ID > 0 { // an edited retry does not tell the number of its row
		name = fmt.Sprintf("%d, %s", r.ID, r.UUID)
	}
	_, err := fmt.Fprintf(a.out, "%s job %s\n", word, name)
	return err
}

// inline runs a job at once. Its run is kept; it is not repeated.
func (a *commandLine) inline(c *cobra.Command, r *app.Services, entry jobs.Entry, n jobs.Spec) error {
	if entry.Run == nil {
		return app.Usagef("jobs are disabled, so %s would run here, but this program does not know it", n.Type)
	}
	if n.Delay > 0 || n.RunAt.After(a.Now()) {
		return app.Usagef("jobs are disabled, so they run at once: none can wait")
	}
	result, err := r.Inline().Do(c.Context(), n)
	if err != nil {
		return err
	}
	if a.global.json {
		return a.printJSON(map[string]any{"type": entry.Type, "inline": true, "result": result})
	}
	if _, err = fmt.Fprintf(a.out, "Ran %s at once, as jobs are disabled.\n", entry.Type); err != nil {
		return err
	}
	if entry.Summary != nil && len(result) > 0 {
		if said, err := entry.Summary(result); err == nil {
			return a.summary(nil, said)
		}
	}
	_, err = fmt.Fprintf(a.out, "Result: %s\n", result)
	return err
}
